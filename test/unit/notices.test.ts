import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ATTACHED_FOR } from '../../src/domain/decide/acquire.js';
import type { RequestedEntry } from '../../src/domain/entry.js';
import type { Lease } from '../../src/domain/lease.js';
import { concernedBy, noticesOf } from '../../src/domain/notices.js';
import { SECOND } from '../../src/domain/time.js';
import { countVisits, DOCUMENT, leased, Namespace, optimistic, read, stable } from '../support/domain.js';

const told = (ns: Namespace, lease: Lease) => noticesOf({ state: ns.state, now: ns.now }, [ns.lease(lease)])[0] ?? [];
const changed = (ns: Namespace, lease: Lease) =>
  told(ns, lease).flatMap((notice) => (notice.kind === 'input_changed' ? [notice.resource] : []));
const wanted = (ns: Namespace, lease: Lease) =>
  told(ns, lease).flatMap((notice) => (notice.kind === 'asked_to_yield' ? [notice.resource] : []));

describe('an event', () => {
  const concerned = (ns: Namespace, most?: number) =>
    new Set(ns.last.flatMap((event) => [...concernedBy(ns.state, event, most)]));

  it('concerns whose lease it ends or renews, who holds what is asked for, and who reads what is granted', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const [reader, holder, bystander] = [
      ns.hold('a', read('doc/x')),
      ns.hold('b', leased('doc/x/')),
      ns.hold('b', leased('doc/y')),
    ].map(({ leaseId }) => leaseId);
    expect(concerned(ns)).toEqual(new Set());
    ns.queue('c', leased('doc/x/below'));
    expect(concerned(ns)).toEqual(new Set([holder]));
    ns.renew(bystander ?? '');
    expect(concerned(ns)).toEqual(new Set([bystander]));
    ns.release(bystander ?? '');
    expect(concerned(ns)).toEqual(new Set([bystander]));
    ns.release(holder ?? '');
    ns.hold('c', optimistic('doc/x'));
    expect(concerned(ns)).toEqual(new Set([reader]));
    expect(concerned(ns, 0)).toEqual(new Set());
  });
});

describe('input_changed', () => {
  it('tells a reader of every write that another run was granted since, also one that is over again', () => {
    const ns = new Namespace().runs('a', 'b');
    const reader = ns.hold('a', read('doc/x'), leased('doc/mine'));
    expect(told(ns, reader)).toEqual([]);
    const writer = ns.advance(SECOND).hold('b', leased('doc/x'));
    const at = writer.grantedAt;
    ns.release(writer);
    ns.advance(SECOND);
    expect(told(ns, reader)).toEqual([{ kind: 'input_changed', resource: 'doc/x', changedAt: at }]);
    // Again with every renewal: a lost answer loses nothing.
    expect(changed(ns, reader)).toEqual(['doc/x']);
  });

  it.each([
    ['an optimistic write', 'doc/x', [optimistic('doc/x')], ['doc/x']],
    ['a write to a subtree above', 'doc/x/y', [leased('doc/x/')], ['doc/x/y']],
    ['a write below a subtree that is read', 'doc/x/', [leased('doc/x/y/z')], ['doc/x']],
    ['a write beside it', 'doc/x', [leased('doc/y'), leased('doc/x/below')], []],
    ['a stable read', 'doc/x', [stable('doc/x')], []],
    ['a read', 'doc/x', [read('doc/x')], []],
  ])('%s on what reads %s', (_, path, entries, expected) => {
    const ns = new Namespace().runs('a', 'b');
    const reader = ns.hold('a', read(path));
    ns.hold('b', ...entries);
    expect(changed(ns, reader)).toEqual(expected);
  });

  it('is nothing about writes of before, and none about those of its own run, also when they come last', () => {
    const ns = new Namespace().runs('a', 'b');
    const early = ns.hold('b', leased('doc/x'));
    const reader = ns.hold('a', read('doc/x'), read('doc/y'));
    expect(changed(ns, reader)).toEqual([]);
    ns.release(early);
    ns.hold('a', leased('doc/x'));
    expect(changed(ns, reader)).toEqual([]);
    ns.hold('b', leased('doc/y'));
    ns.release(ns.hold('b', leased('doc/z')));
    expect(changed(ns, reader)).toEqual(['doc/y']);
  });

  it('is told by the last write of another run, though its own run wrote later', () => {
    const ns = new Namespace().runs('a', 'b');
    const reader = ns.hold('a', read('doc/x'));
    const theirs = ns.hold('b', leased('doc/x'));
    ns.release(theirs);
    ns.release(ns.advance(SECOND).hold('a', leased('doc/x')));
    ns.release(ns.advance(SECOND).hold('a', leased('doc/x')));
    expect(told(ns, reader)).toEqual([{ kind: 'input_changed', resource: 'doc/x', changedAt: theirs.grantedAt }]);
  });

  it('comes with a grant from the queue, and with a write that a change of the map adds', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const reader = ns.hold('a', read('doc/x'), read('doc/tag'));
    const holder = ns.hold('b', leased('doc/x'));
    const waiter = ns.queue('c', leased('doc/x'));
    ns.release(holder);
    expect(told(ns, reader)).toMatchObject([{ resource: 'doc/x', changedAt: ns.lease(waiter).grantedAt }]);
    ns.putMap({
      ...DOCUMENT,
      implies: [
        ...(DOCUMENT.implies ?? []),
        {
          when: { pattern: 'doc/x', access: 'write' },
          touches: [{ resource: 'doc/tag', access: 'write', actions: ['replace'] }],
        },
      ],
    });
    expect(changed(ns, reader)).toEqual(['doc/x', 'doc/tag']);
  });

  it('is said of everything that was read before a replica started, since it cannot know', () => {
    const ns = new Namespace().runs('a', 'b');
    const reader = ns.hold('a', read('doc/x'));
    ns.state.inputs.knownSince = ns.state.time;
    expect(told(ns, reader)).toEqual([{ kind: 'input_changed', resource: 'doc/x', changedAt: ns.state.time }]);
    const later = ns.advance(SECOND).hold('b', read('doc/x'));
    expect(told(ns, later)).toEqual([]);
  });

  it('leaves nothing behind when nobody reads any more', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const readers = [ns.hold('a', read('doc/x'), read('doc/t/')), ns.hold('b', read('doc/x'))];
    ns.hold('c', leased('doc/x'), leased('doc/t/u'));
    expect(ns.state.inputs.writes.size).toBeGreaterThan(0);
    for (const reader of readers) ns.release(reader);
    expect(ns.state.inputs).toMatchObject({ readingLeases: 0, writes: { size: 0 } });
    expect([ns.state.inputs.readers.S, ns.state.inputs.readers.IS]).toMatchObject([{ size: 0 }, { size: 0 }]);
  });

  it('is exact: as a comparison of every grant with every read says', () => {
    const path = fc.constantFrom('doc/a', 'doc/a/', 'doc/a/b', 'doc/a/b/', 'doc/c', 'doc/a/b/c');
    const step = fc.record({
      run: fc.constantFrom('r1', 'r2', 'r3'),
      entries: fc.uniqueArray(fc.tuple(fc.constantFrom(read, leased, optimistic), path), {
        minLength: 1,
        maxLength: 3,
        selector: ([, where]) => where,
      }),
      release: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 25 }), (steps) => {
        const ns = new Namespace().runs('r1', 'r2', 'r3');
        const granted: Lease[] = [];
        for (const { run, entries, release } of steps) {
          const answer = ns.acquire(
            run,
            entries.map(([make, where]) => make(where)),
          );
          ns.advance(1);
          if (answer.kind === 'lease' && answer.lease !== undefined) granted.push(answer.lease);
          const oldest = granted.find((lease) => ns.lease(lease).state === 'active');
          if (release && oldest !== undefined) ns.release(oldest);
          for (const lease of granted) {
            if (ns.lease(lease).state !== 'active') continue;
            expect(new Set(changed(ns, lease))).toEqual(new Set(expectedOf(lease, granted)));
          }
        }
      }),
    );
  });
});

/** What a reader must be told, by comparing everything with everything. */
function expectedOf(reader: Lease, granted: readonly Lease[]): string[] {
  const later = granted.filter(
    (lease) => lease.runId !== reader.runId && (lease.grantedAt as number) > (reader.grantedAt as number),
  );
  const writes = later.flatMap((lease) => lease.entries.filter((entry) => entry.access === 'write'));
  return reader.entries
    .filter((entry) => entry.access === 'read' && writes.some((write) => meet(entry, write)))
    .map((entry) => entry.resource);
}

type Placed = Pick<RequestedEntry, 'resource' | 'scope'>;
const meet = (a: Placed, b: Placed): boolean => covers(a, b.resource) || covers(b, a.resource);
const covers = ({ resource, scope }: Placed, path: string): boolean =>
  resource === path || (scope === 'subtree' && path.startsWith(`${resource}/`));

describe('asked_to_yield', () => {
  it('names what of the lease another run waits for, for as long as it waits', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'), leased('doc/y'), leased('doc/z/'));
    expect(wanted(ns, holder)).toEqual([]);
    const waiter = ns.queue('b', leased('doc/y'), leased('doc/z/1'), leased('doc/other'));
    expect(wanted(ns, holder)).toEqual(['doc/y', 'doc/z']);
    ns.release(waiter);
    expect(wanted(ns, holder)).toEqual([]);
  });

  it('is said of a rule that ties two ids, and not of what other runs wait for elsewhere', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const holder = ns.hold('a', leased('service-token/acme'));
    ns.hold('c', leased('doc/x'));
    ns.queue('b', leased('doc/x'));
    expect(wanted(ns, holder)).toEqual([]);
    ns.queue('b', leased('integration-config/acme'));
    expect(wanted(ns, holder)).toEqual(['service-token/acme']);
  });

  it('is not said of a place that nobody came back for, nor of a set whose time has not come', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const holder = ns.hold('a', leased('doc/x'), leased('doc/later'));
    ns.queue('b', leased('doc/x'));
    const set = { entries: [], task: null, resourceSet: 'later' };
    ns.waiting(ns.acquire('c', set, { wait: 7_200 * SECOND }));
    expect(wanted(ns, holder)).toEqual(['doc/x']);
    ns.advance(ATTACHED_FOR);
    expect(wanted(ns, holder)).toEqual([]);
  });

  it('looks at nothing where nobody waits, and at a bounded number of places where many do', () => {
    const ns = new Namespace().runs('a', ...Array.from({ length: 40 }, (_, n) => `w${n}`));
    const holder = ns.hold('a', leased('doc/x'));
    const visits = countVisits(ns.state.queued);
    told(ns, holder);
    expect(visits.visits).toBe(0);
    for (let n = 0; n < 40; n += 1) ns.queue(`w${n}`, leased('doc/x'));
    visits.visits = 0;
    expect(wanted(ns, holder)).toEqual(['doc/x']);
    // The first one that counts is enough.
    expect(visits.visits).toBe(1);
  });

  it('comes to every lease in turn, where all of them together are past the bound', () => {
    const ns = new Namespace().runs('a', 'b');
    const leases = ['doc/x', 'doc/y', 'doc/z'].map((path) => ns.hold('a', leased(path)));
    ns.queue('b', ...leases.map(({ entries }) => leased(entries[0]?.resource ?? '')));
    const toldWith = (maxLooks: number, now: number): number[] =>
      noticesOf(
        { state: ns.state, now },
        leases.map((lease) => ns.lease(lease)),
        maxLooks,
      ).flatMap((notices, at) => (notices.length > 0 ? [at] : []));
    const all = [0, 1, 2];
    const enoughForAll = Array.from({ length: 100 }, (_, looks) => looks).find(
      (looks) => toldWith(looks, ns.now).length === all.length,
    ) as number;
    const turns = all.map((later) => toldWith(enoughForAll - 1, ns.now + later));
    for (const turn of turns) expect(turn).toHaveLength(2);
    expect(new Set(turns.flat())).toEqual(new Set(all));
  });

  it('says nothing of who waits', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'));
    expect(told(ns, holder)).toEqual([{ kind: 'asked_to_yield', resource: 'doc/x' }]);
  });
});
