import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { compileConflictMap } from '../../src/domain/conflict-map/index.js';
import { VIEW_AGE } from '../../src/domain/entry.js';
import type { Lease } from '../../src/domain/lease.js';
import { CREDENTIAL_BOUNDS, lockDelayUntil, WRITTEN_WITHIN } from '../../src/domain/lock-delay.js';
import { MILLISECOND, type Micros, SECOND } from '../../src/domain/time.js';
import { compiled, DOCUMENT, leased, Namespace, START, stable } from '../support/domain.js';
import { sampleEntry, sampleLease } from '../support/sample-records.js';

const ACTIONS = { replace: { access: 'write', concurrency: 'lease' }, patch: { access: 'write' } } as const;
const AGE: Micros = 3 * SECOND;
/** With the defaults: 2 s until the end is in the log, the age, 5 s of skew. */
const DELAY: Micros = 2 * SECOND + AGE + 5 * SECOND;

type Kinds = NonNullable<ConflictMapDocument['kinds']>;

function mapWith(kind: Partial<Kinds[number]> = {}): ConflictMapDocument {
  const view = {
    pattern: 'vw/{id...}',
    validation: 'view',
    max_view_age: AGE,
    ttl: 300 * SECOND,
    max_ttl: 600 * SECOND,
  };
  return { ...DOCUMENT, kinds: [...(DOCUMENT.kinds ?? []), { ...view, actions: ACTIONS, ...kind } as Kinds[number]] };
}

function holding(document = mapWith()): { ns: Namespace; lease: Lease } {
  const ns = new Namespace(document).runs('a', 'b');
  return { ns, lease: ns.granted(ns.acquire('a', [leased('vw/x'), leased('doc/x')], { ttl: 300 * SECOND })) };
}

function codesOf(kind: Partial<Kinds[number]>): string[] {
  const made = compileConflictMap({
    version: 1,
    kinds: [{ pattern: 'a', actions: ACTIONS, ...kind } as Kinds[number]],
  });
  const problems = made.ok ? made.warnings : made.problems;
  return problems.map(({ code, path }) => `${code} ${path}`).filter((line) => !/^unclassified_action/.test(line));
}

describe('the map', () => {
  it('takes kinds whose targets decide by a view, with how old it may be', () => {
    const kindOf = (kind: Partial<Kinds[number]>) =>
      compiled({ version: 1, kinds: [{ pattern: 'a', ...kind }] }).kinds[0];
    expect(kindOf({ validation: 'view' })).toMatchObject({ validation: 'view', maxViewAge: 5 * SECOND });
    expect(kindOf({ validation: 'view', max_view_age: AGE })).toMatchObject({ maxViewAge: AGE });
    expect(kindOf({})).toMatchObject({ validation: 'introspect', maxViewAge: 0 });
  });

  it('bounds the age, and says where it counts for nothing', () => {
    expect(codesOf({ validation: 'view', max_view_age: 100 * MILLISECOND })).toEqual([]);
    expect(codesOf({ validation: 'view', max_view_age: 60 * SECOND })).toEqual([]);
    expect(codesOf({ validation: 'view', max_view_age: 99 * MILLISECOND })).toEqual([
      'out_of_range kinds[0].max_view_age',
    ]);
    expect(codesOf({ validation: 'view', max_view_age: 61 * SECOND })).toEqual(['out_of_range kinds[0].max_view_age']);
    expect(codesOf({ max_view_age: AGE })).toEqual(['view_age_unused kinds[0].max_view_age']);
  });

  it('gives an entry the latest way of all kinds that it can meet, and the greatest age', () => {
    const ns = new Namespace({
      ...DOCUMENT,
      kinds: [
        { pattern: 't/{n}', actions: ACTIONS },
        { pattern: 't/{n}/v', validation: 'view', max_view_age: AGE, actions: ACTIONS },
        { pattern: 't/{n}/w', validation: 'view', max_view_age: 2 * AGE, actions: ACTIONS },
        { pattern: 't/l/l', validation: 'local', ttl: 60 * SECOND, actions: ACTIONS },
      ],
    }).runs('a');
    const entryOf = (path: string) => ns.hold('a', leased(path)).entries[0];
    expect(entryOf('t/a')).toMatchObject({ validation: 'introspect', maxViewAge: 0 });
    expect(entryOf('t/b/')).toMatchObject({ validation: 'view', maxViewAge: 2 * AGE });
    expect(entryOf('t/l/')).toMatchObject({ validation: 'local', maxViewAge: 2 * AGE });
  });
});

describe('until when', () => {
  it('no view that has not heard of the end decides by it, also when the database clock jumps by the skew', () => {
    fc.assert(
      fc.property(
        fc.record({
          maxViewAge: fc.integer({ min: VIEW_AGE.least, max: VIEW_AGE.most }),
          maxClockSkew: fc.integer({ min: 0, max: 300 * SECOND }),
          ttl: fc.integer({ min: 1, max: 3_600 * SECOND }),
          endsAfter: fc.integer({ min: 0, max: 3_600 * SECOND }),
          /** From its decision until the end is in the log. */
          written: fc.integer({ min: 0, max: WRITTEN_WITHIN - 1 }),
          jump: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        ({ maxViewAge, maxClockSkew, ttl, endsAfter, written, jump }) => {
          const expiresAt = START + ttl;
          const endedAt = START + endsAfter;
          const entries = [sampleEntry({ validation: 'view', maxViewAge })];
          const lease = sampleLease({ expiresAt, entries });
          const until = lockDelayUntil(lease, endedAt, { ...CREDENTIAL_BOUNDS, maxClockSkew });
          expect(until === null).toBe(endedAt >= expiresAt);
          if (until === null || until === expiresAt) return;
          // Proved at the last moment before the end was there, on a clock that then jumps ahead.
          const lastDecision = endedAt + written + maxViewAge + Math.floor(jump * maxClockSkew);
          expect(lastDecision).toBeLessThan(until);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('is the latest of what the lease holds', () => {
    const until = (...entries: ReturnType<typeof sampleEntry>[]): Micros =>
      (lockDelayUntil(sampleLease({ expiresAt: START + 600 * SECOND, entries }), START, CREDENTIAL_BOUNDS) ?? START) -
      START;
    const view = sampleEntry({ validation: 'view', maxViewAge: AGE });
    expect(until(sampleEntry())).toBe(0);
    expect(until(sampleEntry(), view)).toBe(DELAY);
    expect(until(view, sampleEntry({ validation: 'view', maxViewAge: 2 * AGE }))).toBe(DELAY + AGE);
    expect(until(view, sampleEntry({ validation: 'local' }))).toBe(72 * SECOND);
    expect(until({ ...view, access: 'read' })).toBe(0);
    expect(until({ ...view, access: 'stable_read' })).toBe(DELAY);
  });
});

describe('an early end', () => {
  const ends: Record<string, (ns: Namespace, lease: Lease) => unknown> = {
    release: (ns, lease) => ns.release(lease),
    revoke: (ns, lease) => ns.revoke(lease),
    stop: (ns) => ns.stop('a'),
    'the end of its run': (ns) => ns.update('a', 'finished'),
  };

  it.each(Object.entries(ends))(
    'by %s is in force when the last view is dead, and no other run has it before (P3)',
    (_, end) => {
      const { ns, lease } = holding();
      ns.advance(10 * SECOND);
      const until = ns.now + DELAY;
      expect(end(ns, lease)).toMatchObject({ effectiveAt: until });
      expect(ns.decision.reliedOnAsFuture).toBe(ns.decision.now + WRITTEN_WITHIN);
      expect(ns.check(lease, {}).allowed).toBe(false);
      ns.hold('b', leased('doc/x'));
      ns.now = until - 1;
      expect(ns.refused(ns.acquire('b', [leased('vw/x')]))).toMatchObject({ kind: 'lock_delay', retryAfter: 1 });
      expect(ns.refused(ns.acquire('b', [stable('vw/x')])).kind).toBe('lock_delay');
      ns.now = until;
      ns.hold('b', leased('vw/x'));
    },
  );

  it('of a short lease is in force at its expiry at the latest, and an expiry leaves no delay', () => {
    const { ns } = holding();
    const short = ns.granted(ns.acquire('b', [leased('vw/y')], { ttl: 4 * SECOND }));
    expect(ns.release(short).effectiveAt).toBe(short.expiresAt);
    const gone = ns.granted(ns.acquire('b', [leased('vw/z')], { ttl: 4 * SECOND }));
    ns.advance(4 * SECOND);
    ns.sweep();
    expect(ns.lease(gone)).toMatchObject({ endReason: 'expired', lockDelay: null });
    ns.hold('a', leased('vw/z'));
  });
});

describe('a change of the map', () => {
  it('that lets views be older counts for what is held, one that makes them younger does not', () => {
    const older = holding();
    older.ns.putMap(mapWith({ max_view_age: 2 * AGE }));
    expect(older.ns.release(older.lease).effectiveAt).toBe(older.ns.now + DELAY + AGE);
    const younger = holding();
    younger.ns.putMap(mapWith({ max_view_age: SECOND }));
    expect(younger.ns.release(younger.lease).effectiveAt).toBe(younger.ns.now + DELAY);
    const after = younger.ns.granted(younger.ns.acquire('b', [leased('vw/y')], { ttl: 300 * SECOND }));
    expect(younger.ns.release(after).effectiveAt).toBe(younger.ns.now + DELAY - AGE + SECOND);
  });

  it('makes views believed of what is held, and leaves them so', () => {
    const { ns, lease } = holding(mapWith({ validation: 'introspect' }));
    ns.putMap(mapWith());
    expect(ns.lease(lease)).toMatchObject({ generation: 2, entries: [{ validation: 'view', maxViewAge: AGE }, {}] });
    ns.putMap(mapWith({ validation: 'introspect' }));
    expect(ns.release(lease).effectiveAt).toBe(ns.now + DELAY);
    ns.putMap(mapWith({ validation: 'local' }));
    const local = ns.granted(ns.acquire('b', [leased('vw/y')], { ttl: 300 * SECOND }));
    ns.putMap(mapWith());
    expect(ns.lease(local).entries[0]).toMatchObject({ validation: 'local' });
    expect(ns.release(local).effectiveAt).toBe(ns.now + 72 * SECOND);
  });
});

describe('lost history', () => {
  it('closes view kinds until nothing of the lost time is believed any more (P2, P3)', () => {
    const { ns, lease } = holding();
    const until = ns.now + 72 * SECOND;
    ns.loseHistory();
    expect(ns.lease(lease).lockDelay?.until).toBe(until);
    ns.update('b', 'active', { asOperator: true });
    expect(ns.refused(ns.acquire('b', [leased('vw/y')]))).toMatchObject({
      kind: 'lock_delay',
      retryAfter: until - ns.now,
    });
    ns.hold('b', leased('doc/y'));
    ns.now = until;
    ns.hold('b', leased('vw/y'));
  });
});
