import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FenceTable } from '../../src/clients/target/fence-table.js';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { kindOf } from '../../src/domain/conflict-map/index.js';
import type { RequestedEntry } from '../../src/domain/entry.js';
import { Fault } from '../../src/domain/fault.js';
import { fenceOf } from '../../src/domain/fence-watch.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { MAX_REPLAYED } from '../../src/engine/recent-events.js';
import type { FenceUpdate } from '../../src/gen/writ/v1/fence_service.js';
import { leaseDigest } from '../../src/services/fence-watches.js';
import { leased, MAX_SKEW, Namespace, optimistic, stable } from '../support/domain.js';
import { everythingTold, WatchedNamespace } from '../support/fake-watch.js';

const ACTIONS = {
  replace: { access: 'write', concurrency: 'lease' },
  patch: { access: 'write' },
  track: { access: 'write', tracked: true },
} as const;
const TIMES = { ttl: 30 * SECOND, max_ttl: 60 * SECOND } as const;
const VIEW = { ...TIMES, validation: 'view', max_view_age: 2 * SECOND, actions: ACTIONS } as const;

const BASE: ConflictMapDocument = {
  version: 1,
  kinds: [
    { pattern: 'vw/{id...}', ...VIEW },
    { pattern: 'vw/{id}/theirs', ...VIEW, owner_service: ['svc:other'] },
    { pattern: 'vw/strict', ...TIMES, actions: ACTIONS },
    { pattern: 'obs/{id}', ...VIEW, mode: 'observe' },
    { pattern: 'doc/{id}', ...TIMES, actions: ACTIONS },
  ],
  implies: [{ when: { pattern: 'doc/{id}', access: 'write' }, touches: [{ resource: 'vw/{id}', access: 'write' }] }],
};

const [first, ...others] = BASE.kinds ?? [];
const MAPS: readonly ConflictMapDocument[] = [
  BASE,
  { ...BASE, kinds: [{ ...first, pattern: 'vw/{id...}', max_view_age: SECOND }, ...others] },
  { ...BASE, kinds: [{ ...first, pattern: 'vw/{id...}', validation: 'introspect' }, ...others] as typeof others },
  { ...BASE, aliases: [{ from: 'vw/old-{id}', to: 'doc/{id}' }] },
];

const PATHS = ['vw/x', 'vw/x/y', 'vw/y', 'vw/x/theirs', 'vw/strict', 'obs/x', 'doc/x', 'vw/old-x'];
const ASKED = [...PATHS, 'vw//x', 'vw/z', 'other', 'vw/x/'];
const RUNS = ['a', 'b', 'c'];

type Told = NonNullable<FenceUpdate['update']>;
const tableOf = (told: readonly Told[]): FenceTable => {
  const table = new FenceTable(10_000);
  for (const update of told) table.apply(update);
  return table;
};

/** Numbers that stand for what happens; each step takes as many as it needs. */
class Steps {
  constructor(
    private readonly numbers: readonly number[],
    private at = 0,
  ) {}

  get isOver(): boolean {
    return this.at >= this.numbers.length;
  }

  pick<T>(from: readonly T[]): T {
    const number = this.numbers[this.at % this.numbers.length] ?? 0;
    this.at += 1;
    return from[number % from.length] as T;
  }
}

function entryOf(steps: Steps): RequestedEntry {
  const path = steps.pick(PATHS);
  const make = steps.pick([leased, optimistic, optimistic, stable]);
  const scope = steps.pick([true, true, false]) ? 'exact' : 'subtree';
  return { ...make(path), scope };
}

/** Something happens, or is refused. */
function happen(ns: Namespace, steps: Steps): void {
  const leases = [...ns.state.leases.values()];
  const lease = leases.length === 0 ? undefined : steps.pick(leases);
  const what = steps.pick([
    'acquire',
    'acquire',
    'acquire',
    'wait',
    'renew',
    'release',
    'revoke',
    'time',
    'sweep',
    'stop',
    'map',
    'track',
    'settle',
    'freeze',
    'lost',
    'amend',
    'amend',
  ] as const);
  if (what === 'acquire') ns.acquire(steps.pick(RUNS), [entryOf(steps), entryOf(steps)]);
  else if (what === 'wait') ns.acquire(steps.pick(RUNS), [entryOf(steps)], { wait: 60 * SECOND });
  else if (what === 'time') ns.advance(steps.pick([1, 3, 11, 40]) * SECOND);
  else if (what === 'sweep') ns.sweep();
  else if (what === 'freeze') {
    const pattern = steps.pick(['vw/{n}', 'vw/x', 'obs/{n...}', 'doc']);
    if (steps.pick([true, false])) ns.thaw(pattern);
    else ns.freeze(pattern, { deniesChecks: steps.pick([true, true, false]), exact: steps.pick([true, false]) });
  } else if (what === 'map') ns.putMap(steps.pick(MAPS), 'keep_until_end');
  else if (what === 'stop' && steps.pick([1, 2, 3, 4, 5, 6]) === 1) ns.stop(steps.pick(RUNS));
  else if (what === 'lost' && steps.pick([1, 2, 3, 4, 5, 6]) === 1) {
    ns.loseHistory();
    for (const run of RUNS)
      if (ns.state.runs.get(run)?.state === 'blocked') ns.update(run, 'active', { asOperator: true });
  } else if (what === 'settle') {
    for (const { admissionId, inDoubtSince, outcome } of ns.state.admissions.values())
      if (inDoubtSince !== null && outcome === null) ns.settle(admissionId, true);
  } else if (lease === undefined) return;
  else if (what === 'renew') ns.renew(lease);
  else if (what === 'amend') ns.amend(lease, { add: [entryOf(steps)] });
  else if (what === 'release') ns.release(lease);
  else if (what === 'revoke') ns.revoke(lease);
  else if (what === 'track' && lease.state === 'active' && lease.expiresAt !== null && lease.expiresAt > ns.now) {
    const [entry] = lease.entries;
    if (entry?.access === 'write') ns.letIn(lease, entry.resource, 'track');
  }
}

const WATCHER = { target: 'target', viewKindsOnly: true };
const TIMED = new Set(['unclaimed', 'no_progress', 'expired']);
const UNKNOWN = new Set(['unknown_lease']);

/** Whether both say the same of everything that can be asked of the lease. */
function expectSame(ns: Namespace, table: FenceTable, lease: Lease, steps: Steps): number {
  let decided = 0;
  const now = Math.max(ns.now, ns.state.time);
  const tokens = lease.entries.length === 0 ? [0] : lease.entries.map(({ token }) => token);
  const isOfConcern = fenceOf(ns.state.map, WATCHER, { ...lease, state: 'active' }) !== null;
  for (const resource of ASKED) {
    const action = steps.pick(['replace', 'patch', 'patch']);
    const token = steps.pick(tokens);
    const presented = steps.pick([token, token, token, 1, now + MAX_SKEW + 1]);
    const presenterRunId = steps.pick(['', lease.runId, 'other']);
    const observedVersion = steps.pick([null, '1']);
    const real = ns.checkAs(presenterRunId, lease.leaseId, { resource, action, token: presented, observedVersion });
    const write = {
      resource,
      action,
      token: BigInt(presented),
      ...(observedVersion === null ? {} : { observedVersion }),
    };
    const question = { leaseId: lease.leaseId, presenterRunId, writes: [write] };
    const seen = table.check(question, { databaseNow: now, ageMs: 0 });
    const [verdict] = seen.writes;
    const [expected] = real.results;
    if (verdict === undefined || expected === undefined) throw new Error('no verdict');
    if (verdict.reason === 'view_does_not_decide') {
      const kind = kindOf(ns.state.map, resource);
      const aliased = ns.state.map.aliases.length > 0;
      expect(kind?.validation === 'view' && kind.ownerService.length === 0 && !aliased).toBe(false);
      continue;
    }
    decided += 1;
    const said = `${JSON.stringify(question.writes[0]?.resource)} ${action}: ${verdict.reason} and ${expected.reason}`;
    const known = isOfConcern && lease.state === 'active';
    const byTime = TIMED.has(expected.reason) && TIMED.has(verdict.reason);
    // Of what it never heard of, or has forgotten, the view knows no reason; else it says the coordinator's.
    if (!byTime && (known || !UNKNOWN.has(verdict.reason))) expect(verdict.reason, said).toBe(expected.reason);
    expect(verdict.allowed).toBe(expected.allowed);
    if (expected.hold !== null) expect(verdict).toMatchObject({ ...expected.hold, token: BigInt(expected.hold.token) });
  }
  return decided;
}

describe('a view fed by a watch', () => {
  it('decides as the check does, however it came to its place: told all along, gone on from somewhere, or by a snapshot', async () => {
    let decided = 0;
    const oks = { count: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { minLength: 20, maxLength: 160 }), async (numbers) => {
        const steps = new Steps(numbers);
        const ns = new Namespace(BASE).runs(...RUNS);
        const log = new WatchedNamespace(ns);
        const all = await log.watch({ viewKindsOnly: true });
        const told: Told[] = await everythingTold(all);
        const places = [told.length];
        while (!steps.isOver) {
          try {
            happen(ns, steps);
          } catch (error) {
            if (!(error instanceof Fault)) throw error;
          }
          told.push(...(await everythingTold(all)));
          places.push(told.length);
        }
        const place = steps.pick(places);
        const before = told.slice(0, place);
        const mark = before[before.length - 1];
        const at = mark?.$case === 'mark' ? mark.value.position : undefined;
        if (at === undefined) throw new Error('no mark');
        if (steps.pick([true, false])) log.forgetRecent();
        const from = { revision: Number(at.revision), hash: at.hash };
        const resumed = tableOf([...before, ...(await everythingTold(await log.watch({ from, viewKindsOnly: true })))]);
        const fresh = tableOf(await everythingTold(await log.watch({ viewKindsOnly: true })));
        const whole = tableOf(told);
        for (const lease of ns.state.leases.values()) {
          const same = numbers.length;
          for (const table of [whole, resumed, fresh])
            decided += expectSame(ns, table, lease, new Steps(numbers, same));
          if (ns.check(lease, {}).allowed) oks.count += 1;
        }
      }),
      { numRuns: 80 },
    );
    // A test in which nothing is decided, or nothing allowed, proves little.
    expect(decided).toBeGreaterThan(1_000);
    expect(oks.count).toBeGreaterThan(5);
  });
});

describe('a watch', () => {
  const watched = () => {
    const ns = new Namespace(BASE).runs(...RUNS);
    return { ns, log: new WatchedNamespace(ns) };
  };
  const kindsOf = (told: readonly Told[]) => told.map(({ $case }) => $case);
  const positionOf = (told: readonly Told[]) => {
    const mark = told[told.length - 1];
    if (mark?.$case !== 'mark' || mark.value.position === undefined) throw new Error('no mark');
    const { revision, hash } = mark.value.position;
    return { revision: Number(revision), hash };
  };

  it('tells each change once, in order, and nobody a lease id', async () => {
    const { ns, log } = watched();
    const watch = await log.watch();
    await everythingTold(watch);
    const lease = ns.hold('a', leased('vw/x'));
    ns.renew(lease);
    ns.release(lease);
    const told = await everythingTold(watch);
    expect(kindsOf(told)).toEqual(['fence', 'renewed', 'ended', 'reached', 'mark']);
    const text = JSON.stringify(told, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    expect(text).not.toContain(lease.leaseId);
    const [fence] = told;
    expect(fence).toMatchObject({ value: { leaseDigest: leaseDigest(lease.leaseId), runId: 'a' } });
  });

  it('tells a target nothing of what others own, and one that decides by a view nothing else', async () => {
    const { ns, log } = watched();
    ns.hold('a', leased('vw/x/theirs'), leased('obs/x'));
    ns.hold('b', leased('doc/y'));
    const resources = async (viewKindsOnly: boolean, target: string) => {
      const told = await everythingTold(await log.watch({ viewKindsOnly }, target));
      return told
        .flatMap((one) => (one.$case === 'fence' ? one.value.entries.map(({ resource }) => resource) : []))
        .sort();
    };
    expect(await resources(false, 'target')).toEqual(['doc/y', 'obs/x', 'vw/y']);
    expect(await resources(true, 'target')).toEqual(['obs/x', 'vw/y']);
    expect(await resources(true, 'svc:other')).toEqual(['obs/x', 'vw/x/theirs', 'vw/y']);
  });

  it('goes on where it was, over what is in memory and over what is not (F21)', async () => {
    for (const forgets of [false, true]) {
      const { ns, log } = watched();
      const from = positionOf(await everythingTold(await log.watch()));
      const leases = Array.from({ length: 1_050 }, (_, index) =>
        ns.hold(index % 2 === 0 ? 'a' : 'b', leased(`vw/${index}`)),
      );
      log.advance();
      if (forgets) log.forgetRecent();
      const told = await everythingTold(await log.watch({ from }));
      const digests = told.flatMap((one) =>
        one.$case === 'fence' ? [Buffer.from(one.value.leaseDigest).toString('hex')] : [],
      );
      expect(digests).toEqual(leases.map(({ leaseId }) => leaseDigest(leaseId).toString('hex')));
    }
  });

  it('goes on where it was, and is told what has been opened meanwhile', async () => {
    for (const forgets of [false, true]) {
      const { ns, log } = watched();
      const lease = ns.hold('a', leased('vw/x'));
      const doubtful = ns.hold('a', { ...optimistic('vw/y'), actions: ['track'] });
      ns.letIn(doubtful, 'vw/y', 'track');
      ns.release(doubtful);
      ns.freeze('vw/x', { deniesChecks: true, exact: true });
      const before = await everythingTold(await log.watch({ viewKindsOnly: true }));
      // Wider under the same name, and then nothing.
      ns.freeze('vw/x', { deniesChecks: true });
      ns.thaw('vw/x');
      for (const { admissionId } of ns.state.admissions.values()) ns.settle(admissionId, true);
      log.advance();
      if (forgets) log.forgetRecent();
      const told = await everythingTold(await log.watch({ from: positionOf(before), viewKindsOnly: true }));
      const opened = told.flatMap((one) => (one.$case === 'closed' && !one.value.closed ? [one.value.resource] : []));
      expect([...new Set(opened)]).toEqual(['vw/x', 'vw/y']);
      const table = tableOf([...before, ...told]);
      const write = { resource: 'vw/x', action: 'replace', token: BigInt(lease.entries[0]?.token ?? 0) };
      const question = { leaseId: lease.leaseId, presenterRunId: '', writes: [write] };
      expect(tableOf(before).check(question, { databaseNow: ns.now, ageMs: 0 }).writes[0]?.reason).toBe('frozen');
      expect(table.check(question, { databaseNow: ns.now, ageMs: 0 }).writes[0]?.reason).toBe('ok');
    }
  });

  it('refuses to go on from another history, and from too long ago (F13)', async () => {
    const { ns, log } = watched();
    const from = positionOf(await everythingTold(await log.watch()));
    const forked = { ...from, hash: 'f'.repeat(64) };
    await expect(log.watch({ from: forked })).rejects.toMatchObject({ reason: 'HISTORY_FORKED' });
    await expect(log.watch({ from: { ...from, revision: 999 } })).rejects.toMatchObject({ reason: 'HISTORY_FORKED' });
    ns.hold('a', leased('vw/x'));
    log.advance();
    log.forgetRecent();
    await expect(log.watch({ from: forked })).rejects.toMatchObject({ reason: 'HISTORY_FORKED' });
    await expect(log.watch({ from: { ...from, hash: 'x' } })).rejects.toMatchObject({ reason: 'INVALID_ARGUMENT' });
    for (let index = 0; index <= MAX_REPLAYED; index += 1)
      ns.decide((decision) => decision.emit({ kind: 'namespace_created', name: '' }));
    log.advance();
    await expect(log.watch({ from })).rejects.toMatchObject({ reason: 'CURSOR_EXPIRED' });
    expect(log.watches.count).toBe(1);
  });

  it('is told that history was lost while it watches, by a snapshot, or by a fault when its place is gone', async () => {
    const { ns, log } = watched();
    const watch = await log.watch();
    await everythingTold(watch);
    ns.hold('a', leased('vw/x'));
    expect(kindsOf(await everythingTold(watch))).toEqual(['fence', 'reached', 'mark']);
    ns.loseHistory();
    const told = kindsOf(await everythingTold(watch));
    expect(told[0]).toBe('snapshot');
    expect(told).not.toContain('fence');
    // The log is another one, as long as before.
    const last = log.records[log.records.length - 1];
    if (last === undefined) throw new Error('no log');
    log.records[log.records.length - 1] = { ...last, hash: 'e'.repeat(64) };
    log.forgetRecent();
    watch.ping(1_000_000);
    await expect(watch.next()).rejects.toMatchObject({ reason: 'HISTORY_FORKED' });
  });

  it('is one of a bounded number, and counts no more once it is closed', async () => {
    const { log } = watched();
    const watches = await Promise.all(Array.from({ length: 64 }, () => log.watch()));
    await expect(log.watch()).rejects.toMatchObject({ reason: 'WATCH_LIMIT' });
    await log.watch({}, 'another');
    watches[0]?.close();
    watches[0]?.close();
    await log.watch();
    expect(log.watches.count).toBe(65);
  });
});
