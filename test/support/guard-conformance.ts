import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type GuardedOpen, type GuardedWrite, GuardRefusedError } from '../../src/clients/target/guard.js';

/**
 * What every guard must do (design: fencing; C7, C1b), for whatever keeps a target's data. A guard's own test gives the
 * harness; one that is broken on purpose must lose the races.
 */
export interface GuardHarness {
  open(...opens: GuardedOpen[]): Promise<void>;
  /** Guarded writes that set the documents of all their resources to `body`. */
  write(writes: readonly GuardedWrite[], body: string): Promise<void>;
  /** The document of a resource; empty: none. */
  read(resource: string): Promise<string>;
  /** What lies beside the mark, for people (C1b). */
  holder(
    resource: string,
    scope: 'exact' | 'subtree',
  ): Promise<{ token: bigint; runId: string; action: string; expiresAt: Date | null } | null>;
  /** A write of an old holder, as far as it gets before it takes effect: then it is paused, and goes on with `finish`. */
  delay(write: GuardedWrite, body: string): Promise<{ finish(): Promise<void> }>;
  /** Returns when the call has been answered, or is seen to wait for the delayed write. */
  answeredOrWaiting(call: Promise<unknown>): Promise<void>;
  /** No marks, no documents. */
  reset(): Promise<void>;
  end(): Promise<void>;
}

/** A little ahead of the clock, as each test begins: above any floor, and far from made up. */
const baseNow = (): bigint => BigInt(Date.now()) * 1_000n + 60_000_000n;
let base = baseNow();

const token = (n: number): bigint => base + BigInt(n);

export function write(n: number, exclusive: boolean, resource = 'a/b'): GuardedWrite {
  return { resource, action: 'replace', token: token(n), exclusive };
}

const stale = expect.objectContaining({ name: 'GuardRefusedError', reason: 'stale_token' });

function useHarness(make: () => Promise<GuardHarness>): () => GuardHarness {
  let harness: GuardHarness | undefined;
  beforeAll(async () => {
    harness = await make();
  });
  beforeEach(() => {
    base = baseNow();
    return harness?.reset();
  });
  afterAll(() => harness?.end());
  return () => harness as GuardHarness;
}

const RACES = [
  ['an optimistic write and the first open of the resource', false, { resource: 'a/b' }],
  ['a leased write and the first open of the resource', true, { resource: 'a/b' }],
  ['an optimistic write and an open of a subtree above', false, { resource: 'a', scope: 'subtree' }],
  ['a leased write and an open of a subtree above', true, { resource: 'a', scope: 'subtree' }],
  ['a leased write and an open of the resource as a subtree', true, { resource: 'a/b', scope: 'subtree' }],
] as const;

/** The order that loses an update: the old holder is let in, the new one opens and reads, the old one takes effect. */
async function race(guard: GuardHarness, exclusive: boolean, opened: Omit<GuardedOpen, 'token'>) {
  await guard.write([write(1, false)], 'original');
  const delayed = await guard.delay(write(10, exclusive), 'old');
  const read = guard.open({ ...opened, token: token(20) }).then(() => guard.read('a/b'));
  await guard.answeredOrWaiting(read);
  await delayed.finish().catch((error: unknown) => {
    if (!(error instanceof GuardRefusedError)) throw error;
  });
  return { readByNewHolder: await read, there: await guard.read('a/b') };
}

export function conformingGuard(name: string, make: () => Promise<GuardHarness>): void {
  describe(`${name} conforms`, () => {
    const guard = useHarness(make);
    theMarks(guard);
    theRaces(guard);
    theModel(guard);
  });
}

/** Shows that the races above can be lost: a guard without the one thing that saves them loses them, but for `spared`. */
export function brokenGuard(
  name: string,
  make: () => Promise<GuardHarness>,
  spared: (typeof RACES)[number][0] | null = null,
): void {
  describe(`${name} loses`, () => {
    const guard = useHarness(make);
    it.each(RACES.filter(([race]) => race !== spared))('%s', async (_name, exclusive, opened) => {
      expect(await race(guard(), exclusive, opened)).toEqual({ readByNewHolder: 'original', there: 'old' });
    });
  });
}

function theRaces(guard: () => GuardHarness): void {
  it.each(RACES)(
    'a delayed write is there before the new holder reads, or never (C7): %s',
    async (_name, exclusive, opened) => {
      const { readByNewHolder, there } = await race(guard(), exclusive, opened);
      expect(there).toBe(readByNewHolder);
      await expect(guard().write([write(10, exclusive)], 'late')).rejects.toEqual(stale);
      expect(await guard().read('a/b')).toBe(readByNewHolder);
    },
  );
}

function theMarks(guard: () => GuardHarness): void {
  it('lets tokens at or above the mark in, and refuses those below, without saying where it is', async () => {
    await guard().write([write(1_020, true)], 'new');
    await guard().write([write(1_020, true)], 'again');
    const path = { changeClass: 'shared_pointer', resolver: 'release-owner' } as const;
    const refusal = await guard()
      .write([{ ...write(1_010, true), ...path }], 'old')
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(GuardRefusedError);
    expect(refusal).toMatchObject({ reason: 'stale_token', resource: 'a/b', action: 'replace', ...path });
    const { message, cause } = refusal as Error;
    expect(JSON.stringify([message, String(cause), { ...(cause as object) }])).not.toContain(String(token(1_020)));
    expect(await guard().read('a/b')).toBe('again');
  });

  it('keeps run, action and expiry beside the mark (C1b), those of the newest holder', async () => {
    const expiresAt = new Date('2026-12-01T10:00:00.000Z');
    await guard().open({ resource: 'a/b', token: token(5), runId: 'run-1', action: 'promote', expiresAt });
    expect(await guard().holder('a/b', 'exact')).toEqual({
      token: token(5),
      runId: 'run-1',
      action: 'promote',
      expiresAt,
    });
    await guard().write([{ ...write(5, true), runId: 'run-1' }], 'x');
    expect(await guard().holder('a/b', 'exact')).toMatchObject({ token: token(5), action: 'replace', expiresAt });
    await guard().open({ resource: 'a', scope: 'subtree', token: token(6), runId: 'run-2', expiresAt });
    expect(await guard().holder('a', 'subtree')).toMatchObject({ token: token(6), runId: 'run-2' });
    expect(await guard().holder('a/b', 'exact')).toMatchObject({ token: token(5), runId: 'run-1' });
  });

  it('does not keep the expiry of one holder beside the mark of the next', async () => {
    await guard().open({ resource: 'a/b', token: token(5), runId: 'run-1', expiresAt: new Date(0) });
    await guard().open({ resource: 'a/b', token: token(6), runId: 'run-2' });
    expect((await guard().holder('a/b', 'exact'))?.expiresAt).toBeNull();
  });

  it('is not raised by optimistic writes, of which several runs may hold tokens', async () => {
    await guard().write([write(20, false)], 'by 20');
    await guard().write([write(10, false)], 'by 10');
    await guard().open({ resource: 'a/b', token: token(15) });
    await expect(guard().write([write(10, false)], 'late')).rejects.toEqual(stale);
    await guard().write([write(20, false)], 'by 20 again');
    await guard().write([write(15, true)], 'by the holder');
    expect(await guard().read('a/b')).toBe('by the holder');
  });

  it('counts subtree marks of the resource and of all above it, and none beside or below', async () => {
    await guard().open({ resource: 'a', scope: 'subtree', token: token(20) });
    for (const resource of ['a', 'a/b', 'a/b/c/d']) {
      await expect(guard().write([write(10, true, resource)], 'x'), resource).rejects.toEqual(stale);
      await guard().write([write(20, true, resource)], 'x');
    }
    for (const resource of ['ab', 'b/a', 'a-b']) await guard().write([write(10, true, resource)], 'x');
    await expect(guard().open({ resource: 'a', scope: 'subtree', token: token(10) })).rejects.toEqual(stale);
    await guard().open({ resource: 'b', scope: 'subtree', token: token(10) });
  });

  it('lets all writes of one request in, or none', async () => {
    await guard().open({ resource: 'x/2', token: token(20) });
    const writes = [write(10, true, 'x/1'), write(10, true, 'x/2'), write(10, true, 'x/3')];
    await expect(guard().write(writes, 'late')).rejects.toMatchObject({ reason: 'stale_token', resource: 'x/2' });
    expect(await Promise.all(['x/1', 'x/2', 'x/3'].map((one) => guard().read(one)))).toEqual(['', '', '']);
    // Nor did they raise a mark.
    await guard().write([write(5, true, 'x/1'), write(5, true, 'x/3')], 'older');
  });

  it('refuses no token, and one that was made up', async () => {
    const ofToken = (made: bigint) => guard().write([{ ...write(0, true), token: made }], 'x');
    const tomorrow = (BigInt(Date.now()) + 86_400_000n) * 1_000n;
    await expect(ofToken(tomorrow)).rejects.toMatchObject({ reason: 'future_token' });
    await expect(ofToken(2n ** 64n - 1n)).rejects.toMatchObject({ reason: 'future_token' });
    await expect(ofToken(0n)).rejects.toMatchObject({ reason: 'no_token' });
    await expect(ofToken(-1n)).rejects.toMatchObject({ reason: 'no_token' });
    expect(await guard().read('a/b')).toBe('');
  });

  it('does not guess what a write or an open does not say, as services without types may leave it out', async () => {
    const unsaid = { exclusive: undefined as unknown as boolean };
    await expect(guard().write([{ ...write(20, true), ...unsaid }], 'x')).rejects.toThrow(/leased/);
    const scope = 'whole' as 'subtree';
    await expect(guard().open({ resource: 'a', scope, token: token(20) })).rejects.toThrow(/exact or subtree/);
    expect(await guard().read('a/b')).toBe('');
    await guard().write([write(10, true)], 'older');
  });

  const NO_PATHS = [
    '',
    '/a',
    'a/',
    'a//b',
    'a/../b',
    'a/.',
    'a/b ',
    ' a/b',
    'a\u00a0/b',
    'a/b\u200b',
    'a/\u0001',
    'a/cafe\u0301',
  ];
  it.each([...NO_PATHS, Array(33).fill('x').join('/'), 'x'.repeat(1_025)])('takes %j for no path', async (resource) => {
    await expect(guard().write([write(10, true, resource)], 'x')).rejects.toThrow('not a resource path');
    await expect(guard().open({ resource, token: token(10) })).rejects.toThrow('not a resource path');
  });

  it('takes what looks odd and is a path', async () => {
    for (const resource of ['a b/c', 'caf\u00e9/\u6f22\u5b57', "it's/100%/{x}", Array(32).fill('x').join('/')]) {
      await guard().open({ resource, token: token(20) });
      await expect(guard().write([write(10, true, resource)], 'x'), resource).rejects.toEqual(stale);
      await guard().write([write(20, true, resource)], 'y');
      expect(await guard().read(resource)).toBe('y');
    }
  });

  it('makes a change that has nothing to guard, as of kinds that are only observed, and opens nothing by mistake', async () => {
    await guard().write([], 'x');
    await expect(guard().open()).rejects.toThrow(RangeError);
  });
}

// ---------------------------------------------------------------------------------- decisions against a plain model

const PATHS = ['a', 'a/b', 'a/b/c', 'a/bc', 'b'];

const step = fc.oneof(
  fc.record({
    kind: fc.constant('open' as const),
    resource: fc.constantFrom(...PATHS),
    scope: fc.constantFrom('exact' as const, 'subtree' as const),
    token: fc.integer({ min: 1, max: 8 }),
  }),
  fc.record({
    kind: fc.constant('write' as const),
    resources: fc.uniqueArray(fc.constantFrom(...PATHS), { minLength: 1, maxLength: 3 }),
    exclusive: fc.boolean(),
    token: fc.integer({ min: 1, max: 8 }),
  }),
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** The rules of the guard in as few words as they can be said. */
class Model {
  readonly marks = new Map<string, number>();
  readonly documents = new Map<string, string>();

  /** Whether it is let in; if so, it happens. */
  take(asked: Step, body: string): boolean {
    if (asked.kind === 'open') {
      if (asked.token < this.counting(asked.resource, asked.scope)) return false;
      this.marks.set(`${asked.scope} ${asked.resource}`, asked.token);
      return true;
    }
    if (asked.resources.some((resource) => asked.token < this.counting(resource, 'exact'))) return false;
    for (const resource of asked.resources) {
      if (asked.exclusive) this.marks.set(`exact ${resource}`, asked.token);
      this.documents.set(resource, body);
    }
    return true;
  }

  private counting(resource: string, scope: 'exact' | 'subtree'): number {
    const above = PATHS.filter((path) => path === resource || resource.startsWith(`${path}/`));
    const own = scope === 'exact' ? [`exact ${resource}`] : [];
    return Math.max(0, ...[...above.map((path) => `subtree ${path}`), ...own].map((mark) => this.marks.get(mark) ?? 0));
  }
}

function theModel(guard: () => GuardHarness): void {
  it('decides as a plain model does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        await guard().reset();
        const model = new Model();
        for (const [at, asked] of steps.entries()) {
          const body = `step ${at}`;
          const letIn = await taken(() =>
            asked.kind === 'open'
              ? guard().open({ ...asked, token: token(asked.token) })
              : guard().write(
                  asked.resources.map((resource) => write(asked.token, asked.exclusive, resource)),
                  body,
                ),
          );
          expect(letIn, `${at}: ${JSON.stringify(asked)}`).toBe(model.take(asked, body));
        }
        for (const path of PATHS) expect(await guard().read(path)).toBe(model.documents.get(path) ?? '');
      }),
      { numRuns: 40 },
    );
  });
}

async function taken(ask: () => Promise<void>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch (error) {
    if (error instanceof GuardRefusedError && error.reason === 'stale_token') return false;
    throw error;
  }
}
