import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DomainEvent, EventBody } from '../../src/domain/event.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import { GENESIS_HASH, hashEvent } from '../../src/engine/hash-chain.js';
import { GENESIS } from '../../src/engine/replica-state.js';
import type { EventRecord } from '../../src/storage/store.js';
import { DOCUMENT, digestOf, leased, MAX_SKEW, Namespace, optimistic, START, stable } from '../support/domain.js';
import { Auditor } from '../support/oracle/auditor.js';
import { Violation } from '../support/oracle/violation.js';
import { universeOf } from '../support/oracle/write-sets.js';
import type { Sabotage } from '../support/simulation/sabotage.js';
import { simulate } from '../support/simulation/simulation.js';

/** How many worlds; more of them with WRIT_SIM_RUNS. */
const RUNS = Number(process.env.WRIT_SIM_RUNS ?? 200);
/** Steps of a world, on average. */
const STEPS = 150;
/** Which worlds; others with WRIT_SIM_SEED. Always the same ones, so that what is rare happens among them. */
const USUAL_SEED = 2;
const SEED = Number(process.env.WRIT_SIM_SEED ?? USUAL_SEED);
const TIME_LIMIT_MS = 30_000 + RUNS * 2_000;

/** A world is what is drawn from these numbers; a shorter list is the same world, cut or thinned. */
const worlds = fc.array(fc.noShrink(fc.integer()), { minLength: 1, maxLength: 2 * STEPS, size: 'max' });

describe('many clients, replicas, pauses, lost replies, restarts and clock steps', () => {
  it(
    'never break P1 to P10, and leave nothing behind (F1, F2, F7, F10, F14, F16)',
    () => {
      const happened = new Map<string, number>();
      fc.assert(
        fc.property(worlds, (numbers) => {
          const world = simulate(numbers);
          for (const [what, times] of world.happened) happened.set(what, (happened.get(what) ?? 0) + times);
        }),
        { numRuns: RUNS, seed: SEED, interruptAfterTimeLimit: TIME_LIMIT_MS },
      );
      // A simulation in which these never happen proves little.
      const rare = [
        ...['lease', 'waiting', 'refused held', 'refused deadlock', 'refused already_held', 'lease_reexpanded'],
        ...['renewal ok', 'renewal ended', 'release released', 'release nothing_held', 'lease_attached', 'stop'],
        ...['append stale', 'append known_keys', 'append time', 'abandoned append appended', 'abandoned append stale'],
        ...['check ok', 'check expired', 'check released', 'check stale_token', 'check not_covered'],
        ...['credential', 'credential too_short', 'credential ended', 'credentials revoked'],
        ...['check credential_expired'],
        ...[
          'part lease',
          'part refused outside_contract',
          'check parent_ended',
          'amended',
          'amendment held',
          'amendment in_doubt',
          'amendment max_hold',
          'amendment ended',
        ],
        ...[
          'restart',
          'pause',
          'lost reply',
          'look-up',
          'aged look-up',
          'decided ahead',
          'decided ahead, without an event',
        ],
        ...['refused lock_delay', 'lock_delay_ended'],
        ...['tracked check ok', 'tracked check expired', 'refused in_doubt', 'settled'],
        ...['report closed succeeded', 'report closed failed'],
        ...['take-over lease', 'take-over waiting', 'take-over with overlap', 'take-over ends'],
        ...['freeze frozen', 'freeze strengthened', 'thaw thawed', 'thaw grants', 'refused frozen', 'check frozen'],
      ];
      if (RUNS >= 200 && SEED === USUAL_SEED) expect(rare.filter((what) => !happened.has(what))).toEqual([]);
    },
    TIME_LIMIT_MS + 30_000,
  );
});

describe('a sabotaged world is noticed', () => {
  it.each<[Sabotage, RegExp]>([
    ['stale_head', /P7/],
    ['unproven_times', /P1|P5|P8|P9|P11/],
    ['unproven_keys', /P6/],
    ['no_read_index', /P3|P8/],
    ['skipped_events', /P7/],
    ['early_answers', /P8/],
    ['no_lock_delay', /P3/],
  ])('%s', (sabotage, promise) => {
    const found = fc.check(
      fc.property(worlds, (numbers) => {
        simulate(numbers, { sabotage });
      }),
      { numRuns: 300, seed: 1, endOnFailure: true },
    );
    expect(found.errorInstance).toBeInstanceOf(Violation);
    expect((found.errorInstance as Violation).message).toMatch(promise);
  });
});

// ------------------------------------------------------------------------------------------------ planted violations

const UNIVERSE = universeOf([
  'doc/x',
  'doc/y',
  'loc/x',
  'service-token/t',
  'integration-config/t',
  'deployment/e',
  'dns/e',
  'image-tag/e',
]);

const LOG = { genesisHash: GENESIS_HASH, hashOf: hashEvent, eventOf: decodeEvent };

function audit(
  events: readonly DomainEvent[],
  now = START + 3_600 * SECOND,
  tamper = (rows: EventRecord[]) => rows,
): void {
  const auditor = new Auditor(UNIVERSE, LOG, MAX_SKEW);
  // Event by event, each at the time it says, except that the last is appended at `now`.
  const rows = tamper(toRecords('test', 'batch', GENESIS, events));
  rows.forEach((row, index) => {
    auditor.appended([row], index === rows.length - 1 ? now : Math.max(row.time, START));
  });
}

/** The event of a body, right after what has happened. */
function next(ns: Namespace, body: EventBody, time = ns.state.time + 1): DomainEvent {
  return { time, actor: '', runId: '', leaseId: '', resources: [], requestIds: [], body };
}

/** A grant to another run of the same as this lease, as no decision would make it. */
function twin(ns: Namespace, lease: Lease, changes: Partial<Lease> = {}): DomainEvent {
  const time = ns.state.time + 1;
  const entries = lease.entries.map((entry) => ({ ...entry, token: entry.access === 'read' ? 0 : time }));
  const made = { ...lease, leaseId: 'twin', runId: 'b', idempotencyKey: 'twin', grantedAt: time, entries, ...changes };
  return next(ns, { kind: 'lease_granted', lease: made, fingerprint: 'f' }, time);
}

/** The lease gets another resource, as by a change of the map that did not look at who holds it. */
function grown(ns: Namespace, lease: Lease, resource: string): DomainEvent {
  const time = ns.state.time + 1;
  const entries = [...lease.entries, ...lease.entries.map((entry) => ({ ...entry, resource, token: time }))];
  const body: EventBody = { kind: 'lease_reexpanded', leaseId: lease.leaseId, generation: 2, entries, ruleLocks: [] };
  return next(ns, body, time);
}

describe('the auditor', () => {
  const two = (): Namespace => new Namespace().runs('a', 'b', 'c');

  it('finds nothing in what honest decisions write', () => {
    const ns = two();
    const lease = ns.hold('a', leased('doc/x'), leased('deployment/e'));
    ns.queue('b', leased('doc/x'));
    ns.hold('c', optimistic('doc/y'));
    ns.renew(lease, { marker: 'm' });
    ns.release(lease);
    ns.stop('b');
    audit(ns.events, ns.now);
  });

  it('finds nothing in a grant past one that waits for its run by a rule that is gone only where somebody holds by it', () => {
    const ns = two();
    ns.hold('a', leased('service-token/t'));
    ns.hold('c', leased('doc/y'));
    const waiting = ns.queue('b', leased('integration-config/t'), leased('doc/x'), leased('doc/y'));
    ns.putMap({ ...DOCUMENT, conflicts: [] });
    expect(ns.refused(ns.acquire('a', [leased('doc/x')])).kind).toBe('held');
    ns.release(ns.hold('c', leased('doc/z')));
    audit(ns.events, ns.now);
    expect(ns.lease(waiting).ruleLocks).toEqual([]);
  });

  it('finds nothing in the loss of history while a lease is given out in parts of parts', () => {
    const ns = two();
    const principal = 'principal-of-a';
    ns.run('whole', { principal });
    ns.run('part', { principal, parentRunId: 'whole' });
    ns.run('part of the part', { principal, parentRunId: 'part' });
    const whole = ns.hold('whole', leased('doc/x'));
    const part = ns.granted(ns.acquire('part', [leased('doc/x')], { of: whole }));
    ns.granted(ns.acquire('part of the part', [leased('doc/x')], { of: part }));
    ns.loseHistory();
    const auditor = new Auditor(UNIVERSE, LOG, MAX_SKEW, undefined, true);
    // A part is granted in the append that suspends the whole.
    const rows = toRecords('test', 'batch', GENESIS, ns.events);
    auditor.appended(rows.slice(0, -1), ns.now);
    auditor.appended(rows.slice(-1), ns.now);
  });

  it('finds nothing in what comes back beside the lock delay of a lease that a change of the map ended', () => {
    const ns = two();
    const principal = 'principal-of-a';
    ns.run('whole', { principal });
    ns.run('part', { principal, parentRunId: 'whole' });
    const whole = ns.hold('whole', leased('doc/x'));
    ns.hold('b', leased('loc/x'));
    ns.granted(ns.acquire('part', [leased('doc/x')], { of: whole }));
    const before = ns.events.length;
    ns.putMap({ ...DOCUMENT, conflicts: [{ between: ['doc/{id}', 'loc/{id}'] }] }, 'revoke_newer');
    const changed = ns.events.length;
    ns.stop('part');
    expect(ns.state.delayedLeases).toBe(1);
    expect(ns.state.leases.get(whole.leaseId)?.entries[0]?.token).toBeGreaterThan(whole.entries[0]?.token ?? 0);
    const auditor = new Auditor(UNIVERSE, LOG, MAX_SKEW);
    const rows = toRecords('test', 'batch', GENESIS, ns.events);
    for (const append of [rows.slice(0, before), rows.slice(before, changed), rows.slice(changed)])
      auditor.appended(append, ns.now);
  });

  const plants: Record<string, [RegExp, () => void]> = {
    'two incompatible leases of two runs': [
      /P1: .* live together: exclusive and exclusive on doc\/x/,
      () => {
        const ns = two();
        ns.hold('a', leased('doc/x'));
        const lease = ns.hold('b', leased('doc/y'));
        audit([...ns.events, grown(ns, lease, 'doc/x')], ns.now);
      },
    ],
    'a grant over a lease whose end is not written': [
      /P1: twin was granted over/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('doc/x'));
        ns.advance(61 * SECOND);
        const late = twin(ns, lease, { expiresAt: ns.now + 60 * SECOND });
        audit([...ns.events, { ...late, time: ns.now }].map(tokensOfTheirTime), ns.now);
      },
    ],
    'leases that a rule ties': [
      /P1: .* a rule ties/,
      () => {
        const ns = two();
        ns.hold('a', leased('service-token/t'));
        const lease = ns.hold('b', leased('doc/y'));
        audit([...ns.events, grown(ns, lease, 'integration-config/t')], ns.now);
      },
    ],
    'an expired lease that is ended before its time': [
      /P1: .* ended by time before its time/,
      () => {
        const ns = two();
        const { leaseId } = ns.hold('a', leased('doc/x'));
        audit(
          [
            ...ns.events,
            next(ns, { kind: 'lease_ended', leaseId, endReason: 'expired', reason: '', lockDelayUntil: null }),
          ],
          ns.now,
        );
      },
    ],
    'a grant over a write in doubt': [
      /R4: twin was granted while a write of .* is in doubt/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('doc/x'));
        ns.letIn(lease, 'doc/x');
        ns.revoke(lease);
        const late = twin(ns, lease, { endReason: null, endedAt: null, state: 'active' });
        audit([...ns.events, late], ns.now);
      },
    ],
    'a run that has stopped while a write of it is open': [
      /R4: run a has ended, and nobody knows what became of its write to doc\/x/,
      () => {
        const ns = two();
        ns.letIn(ns.hold('a', leased('doc/x')), 'doc/x');
        ns.stop('a');
        const body = { kind: 'run_state_changed', runId: 'a', state: 'stopped', reason: '', blockCause: null } as const;
        audit([...ns.events, next(ns, { ...body, endedAt: ns.now, endsAs: null })], ns.now);
      },
    ],
    'a run that is stopping for nothing': [
      /R4: run a is stopping, and nothing of it is open/,
      () => {
        const ns = two();
        const body = {
          kind: 'run_state_changed',
          runId: 'a',
          state: 'stopping',
          reason: '',
          blockCause: null,
        } as const;
        audit([...ns.events, next(ns, { ...body, endedAt: null, endsAs: 'stopped' })], ns.now);
      },
    ],
    'a write that is let in after the end of its lease': [
      /P3: a write was let in under .*, which is over/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('doc/x'));
        ns.letIn(lease, 'doc/x');
        audit(ns.events, lease.expiresAt as number);
      },
    ],
    'an outcome of a write that is not open': [
      /R4: the outcome of nothing became known/,
      () => {
        const ns = two();
        const settled = { admissionId: 'nothing', resource: 'doc/x', action: 'replace', happened: true } as const;
        audit([...ns.events, next(ns, { kind: 'doubt_settled', ...settled, newVersion: null, reason: '' })], ns.now);
      },
    ],
    'a token that is not above all before': [
      /P2: the token on doc\/y/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('doc/x'));
        const event = twin(ns, lease, { entries: lease.entries.map((entry) => ({ ...entry, resource: 'doc/y' })) });
        audit([...ns.events, { ...event, time: ns.state.time }], ns.now);
      },
    ],
    'a renewal after the end': [
      /P5: .* renewed after its end/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('doc/x'));
        ns.renew(lease);
        audit(ns.events, (lease.expiresAt as number) + 1);
      },
    ],
    'a renewal that shortens': [
      /P5: .* shortened/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('doc/x'));
        const renewal = {
          leaseId: lease.leaseId,
          ttl: 1,
          expiresAt: (lease.expiresAt as number) - 1,
          progressMarker: null,
          progressAt: ns.now,
        };
        audit([...ns.events, next(ns, { kind: 'leases_renewed', runId: 'a', renewals: [renewal] })], ns.now);
      },
    ],
    'a lease without an end': [
      /P5: twin has no end/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('doc/x'));
        ns.release(lease);
        audit([...ns.events, twin(ns, lease, { expiresAt: null })], ns.now);
      },
    ],
    "a lease that outlives its run's authority": [
      /P5: .* authority/,
      () => {
        const ns = two();
        ns.run('short', { authorityEndsAt: START + 5 * SECOND });
        const lease = ns.hold('a', leased('doc/x'));
        ns.release(lease);
        audit([...ns.events, twin(ns, lease, { runId: 'short' })], ns.now);
      },
    ],
    'a second lease for one key': [
      /P6: the key k .* second time/,
      () => {
        const ns = two();
        const lease = ns.granted(ns.acquire('a', [leased('doc/x')], { key: 'k' }));
        ns.release(lease);
        audit([...ns.events, twin(ns, lease, { runId: 'a', idempotencyKey: 'k' })], ns.now);
      },
    ],
    'a grant to a run that was stopped': [
      /P6: run b was granted a lease although it may not acquire/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('doc/x'));
        ns.release(lease);
        ns.stop('b');
        audit([...ns.events, twin(ns, lease)], ns.now);
      },
    ],
    'a gap in the revisions': [
      /P7: revision 3 after 1/,
      () => audit(two().events, START, (rows) => rows.filter((row) => row.revision !== 2)),
    ],
    'a changed byte': [
      /P7: the hash of revision 2 is not its own/,
      () =>
        audit(two().events, START, (rows) =>
          rows.map((row) => (row.revision === 2 ? { ...row, actor: 'mallory' } : row)),
        ),
    ],
    'another history': [
      /P7: revision 2 does not continue/,
      () => {
        const forked = (row: EventRecord) => (row.revision === 2 ? { ...row, prevHash: 'cd'.repeat(32) } : row);
        audit(two().events, START, (rows) => rows.map(forked));
      },
    ],
    'a time that goes back': [
      /P7: the time of revision/,
      () => {
        const ns = two();
        audit([...ns.events, next(ns, { kind: 'checks_denied', denials: [] }, START - 1)], ns.now);
      },
    ],
    'a grant out of turn': [
      /P9: twin was granted before/,
      () => {
        const ns = two();
        ns.hold('a', leased('doc/x'));
        ns.queue('c', leased('doc/x'), leased('doc/y'));
        const free = new Namespace().runs('b');
        const lease = free.hold('b', leased('doc/y'));
        audit([...ns.events, twin(ns, lease)], ns.now);
      },
    ],
    'runs that wait for each other': [
      /P9: . waits for itself/,
      () => {
        const ns = two();
        ns.hold('a', leased('doc/x'));
        ns.hold('b', leased('doc/y'));
        const waiting = ns.queue('a', leased('doc/y'));
        const entries = waiting.entries.map((entry) => ({ ...entry, resource: 'doc/x' }));
        const lease = { ...waiting, leaseId: 'twin', runId: 'b', idempotencyKey: 'twin', entries };
        audit([...ns.events, next(ns, { kind: 'lease_queued', lease, fingerprint: 'f' })], ns.now);
      },
    ],
    'a lease that lacks what a rule implies': [
      /C3: twin lacks write image-tag\/e/,
      () => {
        const ns = two();
        const lease = ns.hold('a', leased('deployment/e'));
        ns.release(lease);
        audit(
          [
            ...ns.events,
            twin(ns, lease, { entries: lease.entries.slice(0, 1).map((e) => ({ ...e, token: ns.state.time + 1 })) }),
          ],
          ns.now,
        );
      },
    ],
    'an entry that a change of the map takes away': [
      /C5: .* lost doc\/x/,
      () => {
        const ns = two();
        const { leaseId } = ns.hold('a', leased('doc/x'));
        const body: EventBody = { kind: 'lease_reexpanded', leaseId, generation: 2, entries: [], ruleLocks: [] };
        audit([...ns.events, next(ns, body)], ns.now);
      },
    ],
  };

  it.each(Object.entries(plants))('finds %s', (_, [promise, plant]) => {
    expect(plant).toThrow(Violation);
    expect(plant).toThrow(promise);
  });

  it('tells states apart by any lock, lease, run or counter that differs', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('doc/x'), stable('doc/y'));
    ns.queue('b', leased('doc/x'));
    const before = digestOf(ns.state);
    ns.state.held.X.remove('doc/x', lease.leaseId);
    expect(digestOf(ns.state)).not.toBe(before);
    ns.state.held.X.add('doc/x', { leaseId: lease.leaseId, runId: 'a', order: 0 });
    expect(digestOf(ns.state)).toBe(before);
    ns.state.leases.set(lease.leaseId, { ...lease, ttl: lease.ttl + 1 });
    expect(digestOf(ns.state)).not.toBe(before);
  });
});

/** With the tokens that its time asks for. */
function tokensOfTheirTime(event: DomainEvent): DomainEvent {
  if (event.body.kind !== 'lease_granted') return event;
  const { lease } = event.body;
  const entries = lease.entries.map((entry) => ({ ...entry, token: entry.access === 'read' ? 0 : event.time }));
  return { ...event, body: { ...event.body, lease: { ...lease, entries } } };
}
