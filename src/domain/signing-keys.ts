import { CREDENTIAL_LIFE, CREDENTIAL_TOLERANCE } from './credential-times.js';
import { Fault } from './fault.js';
import { type Micros, SECOND } from './time.js';

/**
 * The life of the keys that sign credentials, as pure functions of the set and the database clock. A key is published
 * as `next` for longer than verifiers keep what they fetched, then signs as `current`, then is published as `previous`
 * until the last credential it signed is dead, and is retired: its private part is destroyed. So the set stays small
 * however often replicas start, and no verifier meets a key that it could not know (F20).
 */

/** How long verifiers may keep the published set. */
export const KEYS_MAX_AGE: Micros = 300 * SECOND;
/** A replica signs and publishes by what it read no longer ago than this. */
export const KEYS_FRESH_FOR: Micros = 30 * SECOND;
/** A key is published at least this long before it signs: two of the verifiers' ages, and a replica's. */
export const PUBLISHED_BEFORE: Micros = 2 * KEYS_MAX_AGE + KEYS_FRESH_FOR;
/** Keys that no longer sign and are still published, at most. */
const MAX_PREVIOUS = 3;

export type SigningKeyState = 'next' | 'current' | 'previous' | 'retired';

/** What a key is made of; it never changes. */
export interface KeyMaterial {
  /** RFC 7638 thumbprint of the public key: `kid`. */
  readonly keyId: string;
  /** JSON of the public JWK. */
  readonly publicJwk: string;
  /** The private JWK, encrypted. */
  readonly sealedPrivate: string;
}

export interface SigningKey extends Omit<KeyMaterial, 'sealedPrivate'> {
  /** Null once retired. */
  readonly sealedPrivate: string | null;
  readonly state: SigningKeyState;
  readonly createdAt: Micros;
  /** When it began to sign. */
  readonly activatedAt: Micros | null;
  /** When it ceased to sign. */
  readonly replacedAt: Micros | null;
  readonly retiredAt: Micros | null;
}

/** Two keys that may be taken into the set; what is not taken is thrown away. */
export type FreshKeys = readonly [KeyMaterial, KeyMaterial];

/** How long a key stays published after it ceased to sign: until whatever a late replica signed with it is dead. */
export function publishedAfter(maxClockSkew: Micros): Micros {
  return CREDENTIAL_LIFE + CREDENTIAL_TOLERANCE + maxClockSkew + KEYS_FRESH_FOR;
}

export interface KeySchedule {
  /** A key signs this long. */
  readonly rotateAfter: Micros;
  readonly maxClockSkew: Micros;
}

/** Whether the set is not as it should be by now. */
export function isDue(keys: readonly SigningKey[], now: Micros, schedule: KeySchedule): boolean {
  const current = keyIn(keys, 'current');
  const next = keyIn(keys, 'next');
  return (
    current === undefined ||
    next === undefined ||
    mustRotate(current, next, now, schedule) ||
    past(keys, now, schedule).length > 0
  );
}

/** What is to be changed by now: the first keys, a rotation by the schedule, the end of what no longer signs. */
export function upkeep(
  keys: readonly SigningKey[],
  now: Micros,
  schedule: KeySchedule,
  fresh: FreshKeys,
): SigningKey[] {
  const retired = past(keys, now, schedule).map((key) => retire(key, now));
  const current = keyIn(keys, 'current');
  const next = keyIn(keys, 'next');
  // The very first one signs at once: nobody has fetched a set without it.
  if (current === undefined) return [...retired, activate(next ?? made(fresh[0], now), now), made(fresh[1], now)];
  if (next === undefined) return [...retired, made(fresh[1], now)];
  return mustRotate(current, next, now, schedule) ? [...retired, ...replaced(current, next, now, fresh)] : retired;
}

/**
 * RotateSigningKey. With `force` both keys are made anew and the new one signs at once, which verifiers do not expect:
 * for a key that somebody else may have.
 */
export function rotate(keys: readonly SigningKey[], now: Micros, force: boolean, fresh: FreshKeys): SigningKey[] {
  const current = keyIn(keys, 'current');
  const next = keyIn(keys, 'next');
  if (current === undefined || next === undefined) return upkeep(keys, now, NO_SCHEDULE, fresh);
  if (keys.filter(({ state }) => state === 'previous').length >= MAX_PREVIOUS)
    throw new Fault(
      'failed_precondition',
      'TOO_MANY_SIGNING_KEYS',
      `${MAX_PREVIOUS} keys that no longer sign are still published. Wait some minutes until they retire, or retire them.`,
    );
  if (force) return [retire(next, now), replace(current, now), activate(made(fresh[0], now), now), made(fresh[1], now)];
  const from = next.createdAt + PUBLISHED_BEFORE;
  if (from > now)
    throw new Fault(
      'failed_precondition',
      'SIGNING_KEY_TOO_NEW',
      `The next key may sign in ${Math.ceil((from - now) / SECOND)} s: verifiers may not have fetched it yet.`,
      { metadata: { retry_after_ms: String(Math.ceil((from - now) / 1_000)) } },
    );
  return replaced(current, next, now, fresh);
}

/** RetireSigningKey: what it signed is refused from now on. */
export function retireKey(keys: readonly SigningKey[], now: Micros, keyId: string, fresh: FreshKeys): SigningKey[] {
  const key = keys.find((candidate) => candidate.keyId === keyId);
  if (key === undefined)
    throw new Fault('not_found', 'SIGNING_KEY_NOT_FOUND', `There is no signing key ${JSON.stringify(keyId)}.`);
  if (key.state === 'retired') return [];
  if (key.state === 'current')
    throw new Fault('failed_precondition', 'SIGNING_KEY_IN_USE', 'This key signs. Rotate first, then retire it.');
  return key.state === 'next' ? [retire(key, now), made(fresh[0], now)] : [retire(key, now)];
}

const NO_SCHEDULE: KeySchedule = { rotateAfter: Number.POSITIVE_INFINITY, maxClockSkew: 0 };

function keyIn(keys: readonly SigningKey[], state: SigningKeyState): SigningKey | undefined {
  return keys.find((key) => key.state === state);
}

function mustRotate(current: SigningKey, next: SigningKey, now: Micros, { rotateAfter }: KeySchedule): boolean {
  return (current.activatedAt ?? 0) + rotateAfter <= now && next.createdAt + PUBLISHED_BEFORE <= now;
}

function past(keys: readonly SigningKey[], now: Micros, { maxClockSkew }: KeySchedule): SigningKey[] {
  return keys.filter(
    ({ state, replacedAt }) => state === 'previous' && (replacedAt ?? 0) + publishedAfter(maxClockSkew) <= now,
  );
}

function replaced(current: SigningKey, next: SigningKey, now: Micros, fresh: FreshKeys): SigningKey[] {
  return [replace(current, now), activate(next, now), made(fresh[0], now)];
}

function made(material: KeyMaterial, now: Micros): SigningKey {
  return { ...material, state: 'next', createdAt: now, activatedAt: null, replacedAt: null, retiredAt: null };
}

const activate = (key: SigningKey, now: Micros): SigningKey => ({ ...key, state: 'current', activatedAt: now });
const replace = (key: SigningKey, now: Micros): SigningKey => ({ ...key, state: 'previous', replacedAt: now });
const retire = (key: SigningKey, now: Micros): SigningKey => ({
  ...key,
  state: 'retired',
  retiredAt: now,
  sealedPrivate: null,
});
