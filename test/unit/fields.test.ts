import { describe, expect, it } from 'vitest';
import type { Fault } from '../../src/domain/fault.js';
import { FieldChecks } from '../../src/services/fields.js';

/** The fields that are refused. */
function refused(check: (checks: FieldChecks) => void): string[] {
  const checks = new FieldChecks();
  check(checks);
  try {
    checks.done();
    return [];
  } catch (error) {
    return ((error as Fault).details.violations ?? []).map(({ field }) => field);
  }
}

describe('parameters of a task', () => {
  const task = (parameters: Readonly<Record<string, string>>) =>
    refused((checks) =>
      checks.writeSet('', { entries: [], task: { name: 'rotate', parameters }, resourceSet: null }, 256),
    );
  const many = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`p${i}`, 'v']));

  it('are at most 64', () => {
    expect(task(many(64))).toEqual([]);
    expect(task(many(65))).toEqual(['task.parameters']);
  });

  it('have names as maps declare them', () => {
    for (const name of ['tenant', '_a', 'a-b_9', 'x'.repeat(64)]) expect(task({ [name]: 'v' }), name).toEqual([]);
    for (const name of ['', '9a', 'a.b', 'a\u0000', 'ä', '-a', 'x'.repeat(65)])
      expect(task({ [name]: 'v' }), name).toEqual(['task.parameters']);
  });

  it('have values that are bounded text', () => {
    expect(task({ tenant: 'a\u0000' })).toEqual(['task.parameters[tenant]']);
    expect(task({ tenant: 'x'.repeat(1_025) })).toEqual(['task.parameters[tenant]']);
  });
});
