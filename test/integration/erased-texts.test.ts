import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatEvent, formatHeader } from '../../src/services/log-export.js';
import { type LogVerdict, verifyLog } from '../../src/services/verify-log.js';
import type { EventRecord } from '../../src/storage/store.js';
import {
  acquireInput,
  as,
  createRun,
  eventually,
  freshKey,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

const MAP = `
version: 1
kinds:
  - { pattern: "doc/{id}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
`;
const STORY = 'Grace Hopper asked for it by phone';

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: MAP });
  ({ a, b } = pair);
});

afterAll(async () => {
  await pair?.stop();
});

async function exported(): Promise<EventRecord[]> {
  const events: EventRecord[] = [];
  for await (const batch of a.api.exportEvents(as('auditor'), { afterRevision: 0 })) events.push(...batch);
  return events;
}

async function verified(): Promise<LogVerdict> {
  const checkpoint = await a.api.getCheckpoint(as('auditor'));
  const events = (await exported()).filter((event) => event.revision <= checkpoint.revision);
  const lines = [
    formatHeader({ namespace: 'default', afterRevision: 0, afterHash: null, checkpoint }),
    ...events.map(formatEvent),
  ];
  return verifyLog(
    (async function* () {
      yield Buffer.from(`${lines.join('\n')}\n`);
    })(),
  );
}

describe('free text in the log (A3)', () => {
  test('is beside the log, known to every replica, and can be erased without a trace in the chain', async () => {
    const runId = await createRun(a.api);
    const input = acquireInput(runId, [write(`doc/${freshKey()}`, 'replace')], { purpose: STORY });
    await a.api.acquireWriteSet(as('runner'), input);
    await expect(a.api.eraseTexts(as('admin'), { runId, reason: 'too early' })).rejects.toMatchObject({
      reason: 'RUN_NOT_ENDED',
    });
    await a.api.stopRun(as('operator'), { runId, reason: STORY });

    // The other replica follows the log, and reads the text with it.
    const seen = await b.api.getRun(as('auditor'), { runId });
    expect(seen.value.run.stateReason).toBe(STORY);
    const before = (await exported()).filter((event) => event.runId === runId);
    expect(JSON.stringify(before.map(({ texts: _, ...event }) => event))).not.toContain('Grace');
    expect(before.flatMap((event) => event.texts.map(({ text }) => text))).toContain(STORY);
    expect(await verified()).toMatchObject({ ok: true });

    const erased = await a.api.eraseTexts(as('admin'), { runId, reason: 'asked for by the person' });
    expect(erased.value.erased).toBeGreaterThanOrEqual(3);
    const after = (await exported()).filter((event) => event.runId === runId);
    // Only why it was erased is still there.
    expect(after.flatMap((event) => event.texts.map(({ text }) => text))).toEqual(['asked for by the person']);
    expect(after.at(-1)).toMatchObject({ kind: 'texts_erased', actor: 'admin' });
    expect(await verified()).toMatchObject({ ok: true });
  });

  test('is not needed to follow or to load the log', async () => {
    const runId = await createRun(a.api);
    await a.api.stopRun(as('operator'), { runId, reason: STORY });
    await a.api.eraseTexts(as('admin'), { runId, reason: 'x' });
    const fresh = await startReplica({ url: pair.database.url });
    try {
      const { value } = await fresh.api.getRun(as('auditor'), { runId });
      expect(value.run.state).toBe('stopped');
      await createRun(fresh.api);
      await eventually(
        async () =>
          (await b.api.getCheckpoint(as('auditor'))).hash === (await fresh.api.getCheckpoint(as('auditor'))).hash,
        (same) => same,
      );
    } finally {
      await fresh.stop();
    }
  });

  test('of a run that nobody knows is an error, not a success', async () => {
    await expect(a.api.eraseTexts(as('admin'), { runId: '0'.repeat(32), reason: 'x' })).rejects.toMatchObject({
      reason: 'RUN_NOT_FOUND',
    });
  });
});
