import fc from 'fast-check';
import { UnsecuredJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { beginSession, openSession, SESSION_LIFE_MS, sealSession } from '../../src/auth/browser-session.js';
import { CODE_LIFE_MICROS, OneTimeCodes } from '../../src/auth/one-time-codes.js';
import { isSameSecret } from '../../src/auth/same-secret.js';
import { seal, sealKey, unseal } from '../../src/auth/sealed.js';
import { makeConsolePrincipal } from '../../src/auth/tokens.js';
import { Fault } from '../../src/domain/fault.js';
import { MAX_COOKIE_LENGTH } from '../../src/transports/http/cookies.js';
import { FailedSignIns } from '../../src/transports/http/failed-sign-ins.js';

const NOW = 1_800_000_000_000;
const SECRET = new Uint8Array(32).fill(3);
const KEY = sealKey(SECRET, 'browser session');

describe('the session of a browser', () => {
  it('is what was sealed, until its end', async () => {
    const session = beginSession('writ_token', NOW);
    expect(session.endsAtMs).toBe(NOW + SESSION_LIFE_MS);
    const sealed = await sealSession(session, KEY);
    expect(sealed).not.toContain('writ_token');
    expect(await openSession(sealed, KEY, NOW)).toEqual(session);
    expect(await openSession(sealed, KEY, session.endsAtMs - 1_000)).toEqual(session);
    expect(await openSession(sealed, KEY, session.endsAtMs)).toBeNull();
    expect(await openSession(sealed, KEY, session.endsAtMs + 1_000)).toBeNull();
  });

  it('ends with its token when that ends sooner, and never later than by itself', () => {
    const token = (exp: number): string => new UnsecuredJWT({ exp }).encode();
    expect(beginSession(token(NOW / 1_000 + 60), NOW).endsAtMs).toBe(NOW + 60_000);
    expect(beginSession(token(NOW / 1_000 + 86_400), NOW).endsAtMs).toBe(NOW + SESSION_LIFE_MS);
    expect(beginSession('a.b.c', NOW).endsAtMs).toBe(NOW + SESSION_LIFE_MS);
  });

  it('has a value of its own against requests of other pages', () => {
    const [one, other] = [beginSession('t', NOW).csrf, beginSession('t', NOW).csrf];
    expect(one).toMatch(/^[\w-]{43}$/);
    expect(one).not.toBe(other);
  });

  it('cannot be opened by another key, nor by that of another purpose', async () => {
    const sealed = await sealSession(beginSession('t', NOW), KEY);
    for (const key of [
      sealKey(new Uint8Array(32).fill(4), 'browser session'),
      sealKey(SECRET, 'sign-in at an issuer'),
      SECRET,
    ])
      expect(await openSession(sealed, key, NOW)).toBeNull();
  });

  it('cannot be changed, not by a character', async () => {
    const sealed = await sealSession(beginSession('t', NOW), KEY);
    const position = fc.nat({ max: sealed.length - 1 });
    const character = fc.constantFrom(...'ABCXYZabcxyz0189-_.');
    await fc.assert(
      fc.asyncProperty(position, character, async (at, other) => {
        const changed = sealed.slice(0, at) + other + sealed.slice(at + 1);
        fc.pre(changed !== sealed);
        // The last character of a part can have bits that stand for nothing.
        const same = changed.split('.').every((part, index) => {
          return Buffer.from(part, 'base64url').equals(Buffer.from(sealed.split('.')[index] ?? '', 'base64url'));
        });
        const opened = await openSession(changed, KEY, NOW);
        expect(opened === null || same).toBe(true);
      }),
    );
  });

  it('is nothing for a text that is no envelope', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 200 }), async (text) => {
        expect(await openSession(text, KEY, NOW)).toBeNull();
      }),
    );
    for (const text of ['', '.', '....', 'a.b.c.d.e']) expect(await openSession(text, KEY, NOW)).toBeNull();
  });

  it('is nothing for an envelope of ours that holds something else, or never ends', async () => {
    expect(await openSession(await seal({ token: 7, csrf: 'x' }, NOW + 1_000, KEY), KEY, NOW)).toBeNull();
    expect(await openSession(await seal({ csrf: 'x' }, NOW + 1_000, KEY), KEY, NOW)).toBeNull();
    const { CompactEncrypt } = await import('jose');
    const endless = await new CompactEncrypt(Buffer.from('{"token":"t","csrf":"x"}'))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .encrypt(KEY);
    expect(await unseal(endless, KEY, NOW)).toBeNull();
  });

  it('fits the cookies with the longest token that is taken', async () => {
    const sealed = await sealSession(beginSession('x'.repeat(8_185), NOW), KEY);
    expect(sealed.length).toBeLessThanOrEqual(MAX_COOKIE_LENGTH);
  });
});

describe('a one-time code', () => {
  it('counts once', () => {
    const codes = new OneTimeCodes(() => 0);
    const code = codes.issue();
    expect(codes.redeem(`${code}x`)).toBe(false);
    expect(codes.redeem('')).toBe(false);
    expect(codes.redeem(code)).toBe(true);
    expect(codes.redeem(code)).toBe(false);
  });

  it('counts for 15 minutes', () => {
    let now = 0;
    const codes = new OneTimeCodes(() => now);
    for (const [late, counts] of [
      [CODE_LIFE_MICROS - 1, true],
      [CODE_LIFE_MICROS, false],
    ] as const) {
      now = 0;
      const code = codes.issue();
      now = late;
      expect(codes.redeem(code)).toBe(counts);
    }
  });

  it('takes the place of the one before, and is like none', () => {
    const codes = new OneTimeCodes();
    const [first, second] = [codes.issue(), codes.issue()];
    expect(first).not.toBe(second);
    expect(second).toMatch(/^[\w-]{43}$/);
    expect(codes.redeem(first)).toBe(false);
    expect(codes.redeem(second)).toBe(true);
  });
});

describe('the principal of the embedded console', () => {
  it('has the same token after a restart, and another one elsewhere', () => {
    const { token, entry } = makeConsolePrincipal(SECRET);
    expect(token).toMatch(/^writ_[\w-]{43}$/);
    expect(makeConsolePrincipal(SECRET).token).toBe(token);
    expect(makeConsolePrincipal(new Uint8Array(32)).token).not.toBe(token);
    expect(entry.roles).toEqual(['admin', 'operator', 'auditor']);
  });
});

describe('the same secret', () => {
  it('is the same text', () => {
    fc.assert(fc.property(fc.string(), fc.string(), (one, other) => isSameSecret(one, other) === (one === other)));
    expect(isSameSecret('abc', 'abc')).toBe(true);
  });
});

describe('sign-ins that fail', () => {
  const limited = (failed: FailedSignIns, address: string): string | null => {
    try {
      failed.admit(address);
      return null;
    } catch (error) {
      return (error as Fault).reason;
    }
  };

  it('are let pass 10 at once, then one in 6 s, for each address by itself', () => {
    let now = 0;
    const failed = new FailedSignIns(() => now);
    for (let count = 0; count < 10; count += 1) {
      expect(limited(failed, '10.0.0.1')).toBeNull();
      failed.note('10.0.0.1');
    }
    expect(limited(failed, '10.0.0.1')).toBe('SIGN_IN_LIMITED');
    expect(limited(failed, '10.0.0.2')).toBeNull();
    now = 6e6;
    expect(limited(failed, '10.0.0.1')).toBeNull();
    failed.note('10.0.0.1');
    expect(limited(failed, '10.0.0.1')).toBe('SIGN_IN_LIMITED');
    now = 120e6;
    failed.note('10.0.0.1');
    expect(limited(failed, '10.0.0.1')).toBeNull();
  });

  it('say when to try again', () => {
    const failed = new FailedSignIns(() => 0);
    for (let count = 0; count < 11; count += 1) failed.note('10.0.0.1');
    try {
      failed.admit('10.0.0.1');
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(Fault);
      expect((error as Fault).details.metadata).toEqual({ retry_after_ms: '12000' });
    }
  });

  it('count for a network where there are many addresses', () => {
    const failed = new FailedSignIns(() => 0);
    for (let host = 1; host <= 10; host += 1) failed.note(`2001:db8::${host.toString(16)}`);
    expect(limited(failed, '2001:db8:0:0:ffff::1')).toBe('SIGN_IN_LIMITED');
    expect(limited(failed, '2001:db8:0:1::1')).toBeNull();
    for (let count = 0; count < 10; count += 1) failed.note('::ffff:10.0.0.1');
    expect(limited(failed, '::ffff:10.0.0.2')).toBeNull();
  });

  it('are remembered of 10,000 addresses', () => {
    const failed = new FailedSignIns(() => 0);
    for (let host = 0; host < 10_100; host += 1) failed.note(`10.0.${host >> 8}.${host & 255}`);
    expect(failed.size).toBe(10_000);
  });
});
