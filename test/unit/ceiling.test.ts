import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { beyondAllowances, type Ceiling } from '../../src/domain/ceiling.js';
import { decideCreateRun, decideStopRun, decideUpdateRunState } from '../../src/domain/decide/runs.js';
import type { Allowance } from '../../src/domain/entry.js';
import type { Fault } from '../../src/domain/fault.js';
import { SECOND } from '../../src/domain/time.js';
import { EVERYTHING, leased, Namespace, START } from '../support/domain.js';

const NONE: Ceiling = {
  allowed: null,
  maxTtl: null,
  maxAuthority: null,
  latestEnd: null,
  maxLiveRuns: null,
  maxLiveLeases: null,
};

const docs: readonly Allowance[] = [{ pattern: 'doc/{name}', actions: ['patch', 'replace'] }];

function create(ns: Namespace, overrides: Partial<Parameters<typeof decideCreateRun>[1]> = {}): string {
  const runId = ns.fresh('run');
  return ns.decide((decision) =>
    decideCreateRun(decision, {
      principal: 'p',
      freshRunId: runId,
      purpose: 'purpose',
      goalRevision: '',
      initiator: '',
      initiatorVerified: false,
      parentRunId: '',
      ceiling: null,
      allowed: EVERYTHING,
      authorityEndsAt: START + 3_600 * SECOND,
      escalation: [],
      idempotencyKey: runId,
      fingerprint: runId,
      requestIds: [],
      ...overrides,
    }),
  ).runId;
}

function refusal(work: () => unknown): Fault {
  try {
    work();
  } catch (error) {
    return error as Fault;
  }
  throw new Error('it was not refused');
}

const fields = (fault: Fault): string[] => (fault.details.violations ?? []).map((violation) => violation.field);

describe('ceilings (R1)', () => {
  it('name every field that goes too far, at once', () => {
    const ns = new Namespace();
    const ceiling: Ceiling = { ...NONE, allowed: docs, maxAuthority: 60 * SECOND };
    const fault = refusal(() =>
      create(ns, {
        ceiling,
        allowed: [
          { pattern: 'doc/{name}', actions: ['patch', 'delete'] },
          { pattern: 'doc/{rest...}', actions: ['patch'] },
          { pattern: 'doc/x', actions: ['*'] },
        ],
        authorityEndsAt: START + 61 * SECOND,
      }),
    );
    expect(fault).toMatchObject({ faultClass: 'permission_denied', reason: 'BEYOND_CEILING' });
    expect(fields(fault)).toEqual([
      'allowed[0].actions[1]',
      'allowed[1].pattern',
      'allowed[2].actions[0]',
      'authority_ends_at',
    ]);
    expect(ns.state.runs.size).toBe(0);
  });

  it('hold a contract to the last instant and to the longest authority, whichever comes first', () => {
    const ns = new Namespace();
    const ceiling: Ceiling = { ...NONE, maxAuthority: 100 * SECOND, latestEnd: START + 50 * SECOND };
    create(ns, { ceiling, authorityEndsAt: START + 50 * SECOND });
    expect(fields(refusal(() => create(ns, { ceiling, authorityEndsAt: START + 50 * SECOND + 1 })))).toEqual([
      'authority_ends_at',
    ]);
  });

  it('bound the runs of a principal that have not ended, and nobody else’s', () => {
    const ns = new Namespace();
    const ceiling: Ceiling = { ...NONE, maxLiveRuns: 2 };
    const first = create(ns, { ceiling });
    create(ns, { ceiling });
    expect(refusal(() => create(ns, { ceiling }))).toMatchObject({
      faultClass: 'resource_exhausted',
      reason: 'RUN_LIMIT',
    });
    create(ns, { ceiling, principal: 'q' });
    ns.decide((decision) =>
      decideStopRun(decision, { principal: null, runId: first, reason: 'enough', requestIds: [] }),
    );
    create(ns, { ceiling });
  });

  it('bound the live leases of all runs of a principal together', () => {
    const ns = new Namespace();
    const [one, two] = [create(ns), create(ns)];
    const other = create(ns, { principal: 'q' });
    const lease = ns.acquire(one, [leased('doc/a')], { maxLiveLeases: 1 });
    expect(lease.kind).toBe('lease');
    expect(ns.acquire(two, [leased('doc/b')], { maxLiveLeases: 1 })).toMatchObject({
      kind: 'refusal',
      refusal: { kind: 'limit' },
    });
    expect(ns.acquire(other, [leased('doc/b')], { maxLiveLeases: 1 }).kind).toBe('lease');
    ns.decide((decision) => decideStopRun(decision, { principal: null, runId: one, reason: 'done', requestIds: [] }));
    expect(ns.acquire(two, [leased('doc/c')], { maxLiveLeases: 1 }).kind).toBe('lease');
  });

  it('cut a ttl, at the grant and at every renewal', () => {
    const ns = new Namespace();
    const run = create(ns, { ceiling: { ...NONE, maxTtl: 5 * SECOND } });
    const { lease } = ns.acquire(run, [leased('doc/a')], { ttl: 30 * SECOND });
    expect((lease?.expiresAt ?? 0) - (lease?.grantedAt ?? 0)).toBe(5 * SECOND);
    expect(lease?.maxTtl).toBe(5 * SECOND);
  });

  it('a repeated call by its key is the same run, whatever the ceiling says now', () => {
    const ns = new Namespace();
    const again = { idempotencyKey: 'k', fingerprint: 'f' };
    const first = create(ns, again);
    expect(create(ns, { ...again, ceiling: { ...NONE, allowed: [], maxLiveRuns: 0 } })).toBe(first);
  });
});

const actions = fc.oneof(
  fc.constant(['*']),
  fc.uniqueArray(fc.constantFrom('patch', 'replace', 'delete'), { maxLength: 3 }),
);
const allowances = fc.array(
  fc.record({ pattern: fc.constantFrom('doc/a', 'doc/{x}', 'doc/{x...}', '{x...}', 'wiki/{x}/y'), actions }),
  { maxLength: 4 },
);

describe('beyondAllowances', () => {
  it('finds nothing in what was given, and nothing beyond what allows everything', () => {
    fc.assert(
      fc.property(allowances, (given) => {
        expect(beyondAllowances(given, given, 'it')).toEqual([]);
        expect(beyondAllowances(given, [{ pattern: '{all...}', actions: ['*'] }], 'it')).toEqual([]);
      }),
    );
  });

  it('is transitive: what lies within a contract lies within what that lies within', () => {
    fc.assert(
      fc.property(allowances, allowances, allowances, (child, parent, ceiling) => {
        fc.pre(beyondAllowances(parent, ceiling, 'it').length === 0);
        fc.pre(beyondAllowances(child, parent, 'it').length === 0);
        expect(beyondAllowances(child, ceiling, 'it')).toEqual([]);
      }),
    );
  });
});

describe('child runs (R1)', () => {
  it('are never wider than their parent, nor live longer', () => {
    const ns = new Namespace();
    const parentRunId = create(ns, { allowed: docs, authorityEndsAt: START + 60 * SECOND });
    const fault = refusal(() =>
      create(ns, {
        parentRunId,
        allowed: [{ pattern: 'doc/{name}', actions: ['*'] }],
        authorityEndsAt: START + 61 * SECOND,
      }),
    );
    expect(fields(fault)).toEqual(['allowed[0].actions[0]', 'authority_ends_at']);
    const child = create(ns, { parentRunId, allowed: docs, authorityEndsAt: START + 60 * SECOND });
    expect(ns.state.runs.get(child)).toMatchObject({ parentRunId });
  });

  it('take the shorter ttl of ceiling and parent', () => {
    const ns = new Namespace();
    const parentRunId = create(ns, { ceiling: { ...NONE, maxTtl: 5 * SECOND } });
    const child = create(ns, { parentRunId, ceiling: { ...NONE, maxTtl: 9 * SECOND } });
    expect(ns.state.runs.get(child)?.maxTtl).toBe(5 * SECOND);
  });

  it('need a live parent of the same principal; a foreign one looks like none', () => {
    const ns = new Namespace();
    const parentRunId = create(ns);
    expect(refusal(() => create(ns, { parentRunId, principal: 'q' })).reason).toBe('RUN_NOT_FOUND');
    ns.loaded = { ...ns.loaded, runs: new Map([['f'.repeat(32), null]]) };
    expect(refusal(() => create(ns, { parentRunId: 'f'.repeat(32) })).reason).toBe('RUN_NOT_FOUND');
    ns.decide((decision) =>
      decideStopRun(decision, { principal: null, runId: parentRunId, reason: 'stop', requestIds: [] }),
    );
    expect(refusal(() => create(ns, { parentRunId })).reason).toBe('RUN_ENDED');
  });

  it('are nested at most 8 deep', () => {
    const ns = new Namespace();
    let parentRunId = create(ns);
    for (let depth = 2; depth <= 8; depth += 1) parentRunId = create(ns, { parentRunId });
    expect(fields(refusal(() => create(ns, { parentRunId })))).toEqual(['parent_run_id']);
  });

  it('end before their parent does, the deepest first, and all that they hold with them', () => {
    const ns = new Namespace();
    const parent = create(ns);
    const child = create(ns, { parentRunId: parent });
    const grandchild = create(ns, { parentRunId: child });
    const held = [parent, child, grandchild].map((runId, index) => ns.hold(runId, leased(`doc/${index}`)));
    ns.decide((decision) =>
      decideStopRun(decision, { principal: null, runId: parent, reason: 'stop', requestIds: [] }),
    );
    const ended = ns.last.flatMap(({ body, runId }) => (body.kind === 'run_state_changed' ? [runId] : []));
    expect(ended).toEqual([grandchild, child, parent]);
    expect(held.map((lease) => ns.state.leases.get(lease.leaseId)?.endReason)).toEqual([
      'run_stopped',
      'parent_ended',
      'parent_ended',
    ]);
    const released = ns.last.flatMap(({ body, runId }) => (body.kind === 'lease_ended' ? [runId] : []));
    expect(released).toEqual([grandchild, child, parent]);
    expect(ns.state.childrenOf.size).toBe(0);
    expect(ns.state.usage.size).toBe(0);
  });

  it('stop when their parent says that it has finished', () => {
    const ns = new Namespace();
    const parent = create(ns);
    const child = create(ns, { parentRunId: parent });
    ns.decide((decision) =>
      decideUpdateRunState(decision, {
        principal: 'p',
        asOperator: false,
        runId: parent,
        state: 'finished',
        reason: '',
        idempotencyKey: 'k',
        fingerprint: 'f',
        requestIds: [],
      }),
    );
    expect(ns.state.runs.get(child)).toMatchObject({ state: 'stopped' });
  });
});
