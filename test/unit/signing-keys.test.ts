import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeSigningKey, openSigningKey, SealedElsewhere } from '../../src/auth/signing-keys.js';
import {
  type FreshKeys,
  isDue,
  KEYS_MAX_AGE,
  type KeySchedule,
  PUBLISHED_BEFORE,
  publishedAfter,
  retireKey,
  rotate,
  type SigningKey,
  upkeep,
} from '../../src/domain/signing-keys.js';
import { type Micros, SECOND } from '../../src/domain/time.js';

const SCHEDULE: KeySchedule = { rotateAfter: 3_600 * SECOND, maxClockSkew: 5 * SECOND };

/** The set of one installation, with a clock by hand. */
class Keys {
  now: Micros = 1_767_225_600 * SECOND;
  all: SigningKey[] = [];
  private made = 0;

  fresh(): FreshKeys {
    const material = () => ({ keyId: `key-${++this.made}`, publicJwk: '{}', sealedPrivate: 'sealed' });
    return [material(), material()];
  }

  apply(changes: readonly SigningKey[]): void {
    const changed = new Map(changes.map((key) => [key.keyId, key]));
    this.all = [...this.all.filter(({ keyId }) => !changed.has(keyId)), ...changes];
  }

  keepUp(): this {
    this.apply(upkeep(this.all, this.now, SCHEDULE, this.fresh()));
    return this;
  }

  in(state: SigningKey['state']): SigningKey[] {
    return this.all.filter((key) => key.state === state);
  }
}

describe('the life of signing keys', () => {
  it('F20: whatever is asked for and when, one signs, one is next, and the set stays small', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('wait' as const), time: fc.integer({ min: 0, max: 1_000 * SECOND }) }),
      fc.constant({ kind: 'upkeep' as const }),
      fc.record({ kind: fc.constant('rotate' as const), force: fc.boolean() }),
      fc.record({ kind: fc.constant('retire' as const), index: fc.nat(9) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const keys = new Keys().keepUp();
        for (const one of steps) {
          try {
            if (one.kind === 'wait') keys.now += one.time;
            if (one.kind === 'upkeep') keys.keepUp();
            if (one.kind === 'rotate') keys.apply(rotate(keys.all, keys.now, one.force, keys.fresh()));
            if (one.kind === 'retire') {
              const id = keys.all[one.index % keys.all.length]?.keyId ?? '';
              keys.apply(retireKey(keys.all, keys.now, id, keys.fresh()));
            }
          } catch (error) {
            expect((error as { reason?: string }).reason).toMatch(/SIGNING_KEY/);
          }
          expect(keys.in('current')).toHaveLength(1);
          expect(keys.in('next')).toHaveLength(1);
          expect(keys.in('previous').length).toBeLessThanOrEqual(3);
          for (const key of keys.all) expect(key.sealedPrivate === null).toBe(key.state === 'retired');
        }
      }),
      { numRuns: 300 },
    );
  });

  it('a key signs only when every verifier can have fetched it, and is published until what it signed is dead', () => {
    const keys = new Keys().keepUp();
    const [first] = keys.in('current');
    const [second] = keys.in('next');
    expect(() => rotate(keys.all, keys.now, false, keys.fresh())).toThrow(/may sign in 630 s/);
    keys.now += PUBLISHED_BEFORE - 1;
    expect(() => rotate(keys.all, keys.now, false, keys.fresh())).toThrow(/may sign in 1 s/);
    keys.now += 1;
    keys.apply(rotate(keys.all, keys.now, false, keys.fresh()));
    expect(keys.in('current')[0]?.keyId).toBe(second?.keyId);
    expect(keys.in('previous')[0]?.keyId).toBe(first?.keyId);
    keys.now += publishedAfter(SCHEDULE.maxClockSkew) - 1;
    expect(keys.keepUp().in('previous')).toHaveLength(1);
    keys.now += 1;
    expect(isDue(keys.all, keys.now, SCHEDULE)).toBe(true);
    expect(keys.keepUp().in('previous')).toEqual([]);
    expect(keys.in('retired')).toMatchObject([{ keyId: first?.keyId, sealedPrivate: null }]);
    expect(isDue(keys.all, keys.now, SCHEDULE)).toBe(false);
    expect(PUBLISHED_BEFORE).toBeGreaterThan(2 * KEYS_MAX_AGE);
  });

  it('rotates by the schedule, and a start changes nothing', () => {
    const keys = new Keys().keepUp();
    const before = keys.all;
    for (let start = 0; start < 50; start += 1) keys.keepUp();
    expect(keys.all).toEqual(before);
    keys.now += SCHEDULE.rotateAfter;
    expect(isDue(keys.all, keys.now, SCHEDULE)).toBe(true);
    keys.keepUp();
    expect(keys.in('current')[0]?.keyId).toBe(before.find(({ state }) => state === 'next')?.keyId);
  });

  it('by force both are new: what somebody else may have signs nothing more', () => {
    const keys = new Keys().keepUp();
    const known = keys.all.map(({ keyId }) => keyId);
    keys.apply(rotate(keys.all, keys.now, true, keys.fresh()));
    for (const key of [...keys.in('current'), ...keys.in('next')]) expect(known).not.toContain(key.keyId);
    expect([keys.in('previous').length, keys.in('retired').length]).toEqual([1, 1]);
  });

  it('the one that signs is not retired; an unknown one is not found; twice is once', () => {
    const keys = new Keys().keepUp();
    const retire = (keyId: string) => retireKey(keys.all, keys.now, keyId, keys.fresh());
    expect(() => retire(keys.in('current')[0]?.keyId ?? '')).toThrow(/Rotate first/);
    expect(() => retire('nobody')).toThrow(/no signing key/);
    const next = keys.in('next')[0]?.keyId ?? '';
    keys.apply(retire(next));
    expect(retire(next)).toEqual([]);
    expect(keys.in('next')[0]?.keyId).not.toBe(next);
  });
});

describe('sealed keys', () => {
  const kek = new Uint8Array(32).fill(1);
  const asKey = (material: Awaited<ReturnType<typeof makeSigningKey>>): SigningKey => ({
    ...material,
    state: 'current',
    createdAt: 1,
    activatedAt: 1,
    replacedAt: null,
    retiredAt: null,
  });

  it('are opened by the key that sealed them, and cannot be taken out again', async () => {
    const key = await openSigningKey(asKey(await makeSigningKey(kek)), kek);
    expect(key.extractable).toBe(false);
    expect(key.usages).toEqual(['sign']);
  });

  it('hold nothing private in the clear', async () => {
    const { publicJwk, sealedPrivate } = await makeSigningKey(kek);
    expect(Object.keys(JSON.parse(publicJwk) as object).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    expect(sealedPrivate.split('.')).toHaveLength(5);
    expect(Buffer.from(sealedPrivate.split('.')[0] ?? '', 'base64url').toString()).toContain('A256GCM');
  });

  it('are refused under another key, when changed, and in the place of another', async () => {
    const [one, two] = [asKey(await makeSigningKey(kek)), asKey(await makeSigningKey(kek))];
    // Of the last part's first byte: its last letter has bits that say nothing.
    const changed = one.sealedPrivate?.replace(
      /\.(.)([^.]*)$/,
      (_, first, rest) => `.${first === 'A' ? 'B' : 'A'}${rest}`,
    );
    await expect(openSigningKey(one, new Uint8Array(32).fill(2))).rejects.toThrow(SealedElsewhere);
    await expect(openSigningKey({ ...one, sealedPrivate: changed ?? null }, kek)).rejects.toThrow(SealedElsewhere);
    await expect(openSigningKey({ ...one, sealedPrivate: two.sealedPrivate }, kek)).rejects.toThrow(SealedElsewhere);
  });
});
