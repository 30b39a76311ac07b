import { createHash } from 'node:crypto';
import { type IdempotencyOptions, type IdempotencyStore, keptOf, keyTimes } from './idempotency.js';
import { isResult, type KeptAnswer, type KeyRecord, type KeyScope } from './idempotency-record.js';
import { type RedisStore, runScript } from './redis-script.js';

/** Where keys are, and how long they are kept. */
export interface RedisIdempotencyOptions extends IdempotencyOptions {
  /** What the keys in Redis begin with; default `writ-keys:`. Each script works on one key, in a cluster too. */
  readonly prefix?: string;
}

/** Idempotency keys in Redis. */
export interface RedisIdempotency extends IdempotencyStore<undefined> {
  /** The key in Redis, a hash with `principal`, `route`, `key` and `state`, for people who look. */
  redisKeyOf(scope: KeyScope): string;
}

/**
 * Idempotency keys in Redis (W2), for a target that has no Postgres. Here the answer cannot commit together with what the
 * handler changes elsewhere: when a process dies in between, or its handler throws, the outcome is unknown, and it is
 * never done again by itself. A handler that knows that it has done nothing throws a ProblemError.
 *
 * Redis must persist (`appendonly yes`, `appendfsync always`) and not evict: a key that is lost lets a retry through.
 * Answers expire by themselves; keys without one stay until they are settled.
 *
 * @example
 * const keys = redisIdempotency(redis, { retentionMs: 86_400_000, inDoubtMs: 3_600_000 });
 */
export function redisIdempotency(redis: RedisStore, options: RedisIdempotencyOptions): RedisIdempotency {
  const times = keyTimes(options);
  const prefix = options.prefix ?? 'writ-keys:';
  // One length for all: the parts come from outside.
  const redisKeyOf = ({ principal, route, key }: KeyScope): string =>
    prefix +
    createHash('sha256')
      .update(JSON.stringify([principal, route, key]))
      .digest('hex');
  const run = (script: string, scope: KeyScope, args: readonly (string | number)[]) =>
    runScript(redis, script, [redisKeyOf(scope)], args);
  return {
    times,
    redisKeyOf,
    async claim(claim) {
      const { principal, route, key, fingerprint, attempt } = claim;
      const args = [fingerprint, attempt, times.leaseMs, principal, route, key];
      const found = (await run(SCRIPTS.claim, claim, args)) as string[];
      return found[0] === 'claimed' ? 'claimed' : recordOf(found);
    },
    async lapse(claim, attempt) {
      const found = (await run(SCRIPTS.loseTrack, claim, [attempt])) as string[];
      // Freed a moment ago: whoever sends it again may do it.
      if (found.length === 0) return { state: 'in_flight', fingerprint: claim.fingerprint, attempt, leaseLeftMs: 1 };
      return recordOf(found);
    },
    async perform(claim, work) {
      const answer = await work(undefined);
      if (isResult(answer.status))
        await run(SCRIPTS.finish, claim, [claim.attempt, ...answerArguments(keptOf(answer, times)), times.retentionMs]);
      else await run(SCRIPTS.free, claim, [claim.attempt]);
      return answer;
    },
    async abandon(claim) {
      await run(SCRIPTS.abandon, claim, [claim.attempt]);
    },
    async settle(scope, outcome) {
      const settled = outcome.happened
        ? await run(SCRIPTS.settleHappened, scope, [
            ...answerArguments(keptOf(outcome.answer, times)),
            times.retentionMs,
          ])
        : await run(SCRIPTS.settleNot, scope, []);
      return settled === 1;
    },
  };
}

const answerArguments = ({ status, headers, body, complete }: KeptAnswer): (string | number)[] => [
  status,
  JSON.stringify(headers),
  Buffer.from(body).toString('base64'),
  complete ? 1 : 0,
];

function recordOf(found: readonly string[]): KeyRecord {
  const [state, fingerprint = ''] = found;
  if (state === 'unknown') return { state, fingerprint };
  if (state === 'in_flight') return { state, fingerprint, attempt: found[2] ?? '', leaseLeftMs: Number(found[3]) };
  if (state !== 'finished') throw new Error('a hash of idempotency keys in Redis has no state that is known');
  const [status, headers = '{}', body = '', complete] = found.slice(2);
  return {
    state,
    fingerprint,
    answer: {
      status: Number(status),
      headers: JSON.parse(headers) as Record<string, string>,
      body: Buffer.from(body, 'base64'),
      complete: complete === '1',
    },
  };
}

/** Milliseconds on the clock of Redis, and what is under the key. */
const PRELUDE = `
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local function found()
  local r = redis.call('HMGET', KEYS[1], 'state', 'fingerprint', 'attempt', 'lease_until', 'status', 'headers', 'body', 'complete')
  if not r[1] then return {} end
  if r[1] == 'in_flight' then return { r[1], r[2], r[3], string.format('%.0f', tonumber(r[4]) - now()) } end
  if r[1] == 'finished' then return { r[1], r[2], r[5], r[6], r[7], r[8] } end
  return { r[1], r[2] }
end
local function is(state, attempt)
  return redis.call('HGET', KEYS[1], 'state') == state and (not attempt or redis.call('HGET', KEYS[1], 'attempt') == attempt)
end
local function lapsed()
  return is('in_flight') and tonumber(redis.call('HGET', KEYS[1], 'lease_until')) <= now()
end
local function finish(status, headers, body, complete, retention)
  redis.call('HSET', KEYS[1], 'state', 'finished', 'status', status, 'headers', headers, 'body', body, 'complete', complete)
  redis.call('PEXPIRE', KEYS[1], retention)
  return 1
end
`;

const script = (body: string): string => PRELUDE + body;

const SCRIPTS = {
  // A client that lost its connection sends the script again: this very attempt has the key then.
  claim: script(`
if is('in_flight', ARGV[2]) then return { 'claimed' } end
if redis.call('EXISTS', KEYS[1]) == 1 then return found() end
redis.call('HSET', KEYS[1], 'state', 'in_flight', 'fingerprint', ARGV[1], 'attempt', ARGV[2],
  'lease_until', string.format('%.0f', now() + tonumber(ARGV[3])), 'principal', ARGV[4], 'route', ARGV[5], 'key', ARGV[6])
return { 'claimed' }`),
  loseTrack: script(`
if is('in_flight', ARGV[1]) and lapsed() then redis.call('HSET', KEYS[1], 'state', 'unknown') end
return found()`),
  // Also of a key that somebody has lost track of meanwhile: now it is known how it ended.
  finish: script(`
if is('in_flight', ARGV[1]) or is('unknown', ARGV[1]) then return finish(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]) end
return 0`),
  free: script(`
if is('in_flight', ARGV[1]) or is('unknown', ARGV[1]) then return redis.call('DEL', KEYS[1]) end
return 0`),
  abandon: script(`
if is('in_flight', ARGV[1]) then redis.call('HSET', KEYS[1], 'state', 'unknown') end
return 0`),
  settleHappened: script(`
if is('unknown') or lapsed() then return finish(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]) end
return 0`),
  settleNot: script(`
if is('unknown') or lapsed() then return redis.call('DEL', KEYS[1]) end
return 0`),
};
