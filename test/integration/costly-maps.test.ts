import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { as, putMap, startReplica, type TestReplica, write } from '../support/coordinator.js';
import * as hostile from '../support/hostile-maps.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

let database: TestDatabase;
let replica: TestReplica;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await startReplica({ url: database.url });
  await putMap(replica.api, SIMPLE_MAP);
});

afterAll(async () => {
  await replica?.stop();
  await database?.drop();
});

const validate = (document: string) => replica.api.validateConflictMap(as('admin'), { document, fileName: '' });

describe('a costly conflict map is refused by name', () => {
  test.each([
    ['anchors and aliases without end', hostile.woven, 'too_many_aliases'],
    ['brackets without end', hostile.nested, 'too_deep'],
    ['lists in lists on one line', hostile.stacked, 'too_deep'],
    ['values without end', hostile.crowded, 'too_many_values'],
    ['aliases that stand for aliases', hostile.bomb, 'too_many_aliases'],
    ['profiles that add up', hostile.inherited, 'too_many_actions'],
    ['kinds that mean the same', hostile.repeated, 'equally_specific'],
  ])('%s: refused by name', async (_what, document, code) => {
    const { valid, problems } = await validate(document);
    expect(valid).toBe(false);
    expect(problems.find((problem) => !problem.warning)?.code).toBe(code);
    expect(problems.length).toBeLessThanOrEqual(2_000);
  });

  test('a question that follows rules without end is refused by the name of a rule', async () => {
    const side = { entries: [write('r0/a')], task: null, resourceSet: null };
    const { refusalA } = await replica.api.explainConflict(as('admin'), {
      a: side,
      b: side,
      document: hostile.entangled(),
    });
    expect(refusalA).toMatchObject({ kind: 'limit', message: expect.stringContaining('rule implies[') });
  });
});
