import { describe, expect, it } from 'vitest';
import { DEFAULT_BOUNDS, View } from '../../src/domain/decide/decision.js';
import type { ProtectedWrite } from '../../src/domain/fence.js';
import type { Lease } from '../../src/domain/lease.js';
import type { CallContext } from '../../src/services/api.js';
import { checkFence } from '../../src/services/check-fence.js';
import type { Denial } from '../../src/services/denial-log.js';
import type { Deps } from '../../src/services/deps.js';
import { DOCUMENT, leased, MAX_SKEW, Namespace, tokenOn } from '../support/domain.js';

const CONTEXT: CallContext = {
  principal: { name: 'svc:docs', roles: new Set(['target']) },
  namespace: '',
  requestId: 'call',
  deadlineMs: null,
  signal: new AbortController().signal,
};

/** The service over one namespace in memory; what it counted, noted and raised. */
function service(ownerService: readonly string[] = []) {
  const kinds = (DOCUMENT.kinds ?? []).map((kind) => ({ ...kind, owner_service: ownerService }));
  const ns = new Namespace({ ...DOCUMENT, kinds }).runs('a', 'b');
  const lease = ns.hold('a', leased('doc/x'));
  const checked: number[] = [];
  const denied: { readonly denial: Denial; readonly ids: readonly string[] }[] = [];
  const alarms: unknown[][] = [];
  const none = { get: () => null };
  const loaded = { leases: none, runs: none, keys: none } as never;
  const engine = {
    namespace: 'default',
    read: async <R>(question: (view: View) => R) => {
      const view = new View(ns.state, ns.now, loaded);
      return { value: question(view), revision: ns.state.revision, now: view.now };
    },
  };
  const deps = {
    installation: { open: async () => engine },
    bounds: DEFAULT_BOUNDS,
    maxClockSkew: MAX_SKEW,
    metrics: { checked: (micros: number) => checked.push(micros), denied: () => undefined },
    denials: {
      note: (_namespace: string, denial: Denial, ids: readonly string[]) => denied.push({ denial, ids }),
      noteUnmatched: () => undefined,
    },
    futureTokens: { note: (...facts: unknown[]) => alarms.push(facts) },
  } as unknown as Deps;
  const check = (more: { leaseId?: string; presenterRunId?: string } & Partial<ProtectedWrite> = {}) =>
    checkFence(deps, CONTEXT, {
      leaseId: more.leaseId ?? lease.leaseId,
      presenterRunId: more.presenterRunId ?? '',
      writes: [
        {
          resource: more.resource ?? 'doc/x',
          action: more.action ?? 'replace',
          token: more.token ?? tokenOn(lease as Lease, 'doc/x'),
          observedVersion: null,
        },
      ],
      requestId: 'mine',
    });
  return { ns, lease, checked, denied, alarms, check };
}

describe('CheckFence', () => {
  it('counts how long each check took', async () => {
    const { checked, check } = service();
    expect((await check()).value.allowed).toBe(true);
    await check({ resource: 'doc/y' });
    expect(checked).toHaveLength(2);
    for (const micros of checked) expect(micros).toBeGreaterThanOrEqual(0);
  });

  it('raises the alarm on a token from the future, with principal and resource and no token', async () => {
    const { ns, alarms, denied, check } = service();
    await check({ token: 1 });
    expect(alarms).toEqual([]);
    await check({ token: ns.now + MAX_SKEW + 1 });
    expect(alarms).toEqual([['svc:docs', 'doc/x']]);
    expect(denied.at(-1)).toMatchObject({ denial: { reason: 'future_token' }, ids: ['mine', 'call'] });
  });

  it('records a denial under the run that holds the lease; of whom the target names it says so (A1)', async () => {
    const { denied, check } = service();
    await check({ token: 1 });
    await check({ token: 1, presenterRunId: 'a' });
    await check({ presenterRunId: 'b' });
    await check({ leaseId: 'nothing', presenterRunId: 'b' });
    expect(denied.map(({ denial }) => [denial.reason, denial.runId, denial.presentedRun])).toEqual([
      ['stale_token', 'a', ''],
      ['stale_token', 'a', ''],
      ['wrong_holder', 'a', 'b'],
      ['unknown_lease', '', 'b'],
    ]);
  });

  it('lets only the owner services of a kind check it, and tells others nothing of the lease', async () => {
    expect((await service(['svc:docs', 'svc:other']).check()).value.allowed).toBe(true);
    const { denied, check } = service(['svc:other']);
    for (const more of [{}, { token: 1 }, { leaseId: 'nothing' }]) {
      const { value } = await check(more);
      expect(value.allowed).toBe(false);
      expect(value.results[0]?.reason).toBe('wrong_target');
    }
    expect(denied.map(({ denial }) => [denial.reason, denial.target])).toContainEqual(['wrong_target', 'svc:docs']);
  });

  it.each([
    ['lease_id', { leaseId: 'a\u0000b' }],
    ['lease_id', { leaseId: '' }],
    ['presenter_run_id', { presenterRunId: 'a\u0000' }],
    ['presenter_run_id', { presenterRunId: 'x'.repeat(129) }],
  ])('refuses what could not be recorded: %s', async (field, more) => {
    const { check } = service();
    await expect(check(more)).rejects.toMatchObject({ details: { violations: [{ field }] } });
  });
});
