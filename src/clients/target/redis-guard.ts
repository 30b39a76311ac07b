import { lengthFlaw, segmentFlaw } from '../../route-table/segment.js';
import {
  type Guard,
  type GuardedOpen,
  type GuardedWrite,
  type GuardReason,
  GuardRefusedError,
  inResourceOrder,
  refuseNone,
} from './guard.js';
import { argumentsOf, type Claim, guardedScript, INSTALL_SCRIPT, keysOf, OPEN_SCRIPT } from './redis-guard-script.js';
import { type RedisStore, runScript } from './redis-script.js';

/** What a write changes: a script like any other, with KEYS and ARGV of its own. It runs in one step with the guard. */
export interface RedisChange {
  /** Lua. Part of the program, like SQL: whatever comes from outside belongs into `args`. */
  readonly script: string;
  /** Every key that the script touches. In a cluster they carry the hash tag of the guard's prefix. */
  readonly keys: readonly string[];
  /** Values for the script, which finds them in ARGV. */
  readonly args?: readonly (string | number | Buffer)[];
}

/** Where the marks are. */
export interface RedisGuardOptions {
  /**
   * What the guard's keys begin with; default `writ-guard:`. In a cluster it has a hash tag, such as `{releases}:guard:`,
   * and the keys of the changes have the same one, since a script works on one slot; Redis refuses anything else.
   */
  readonly prefix?: string;
}

/** A guard whose marks lie in the Redis of what it guards (C7). */
export interface RedisGuard extends Guard<RedisStore, RedisChange> {
  /**
   * Makes the floor, unless there is one: the moment from which on tokens are let in. To be called at every start. When
   * Redis has lost its data, the marks are gone together with the floor; the one that is made then refuses every token
   * that was granted before.
   */
  install(redis: RedisStore): Promise<void>;
  /**
   * What would lose marks and let an old holder in: eviction, no persistence. Empty: nothing that can be seen. For the
   * start of a service, which should refuse to serve.
   */
  dangers(redis: RedisStore): Promise<readonly string[]>;
}

/**
 * The guard of a target that keeps its data in Redis: compares the fencing token and makes the change in one script.
 * Needs Redis 5 or newer, with persistence (`appendonly yes`, `appendfsync always`) and without eviction: a mark that is
 * lost lets an old holder in.
 *
 * The change looks before it writes: what a script has done stays done when it fails midway. And it must be safe to
 * repeat: a client that loses its connection may not know whether the script ran, and ioredis
 * sends it again by itself unless `autoResendUnfulfilledCommands` is off. A version condition inside the script makes it
 * so.
 *
 * @example
 * const guard = redisGuard();
 * await guard.install(redis);
 * await guard.open(redis, { resource: 'release/prod-eu', token, runId });
 *
 * const version = await guard.write(redis, [{ resource: 'release/prod-eu', action: 'promote', token, exclusive: true }], {
 *   script: `
 *     if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return false end
 *     redis.call('HSET', KEYS[1], 'image', ARGV[2])
 *     return redis.call('HINCRBY', KEYS[1], 'version', 1)`,
 *   keys: ['release:prod-eu'],
 *   args: [observedVersion, image],
 * });
 * // null: the version had changed; nothing was written
 */
export function redisGuard({ prefix = 'writ-guard:' }: RedisGuardOptions = {}): RedisGuard {
  const floorKey = `${prefix}floor`;
  const subtreeMark = (path: string) => `${prefix}subtree:${path}`;
  const claimOf = (asked: GuardedOpen | GuardedWrite, scope: 'exact' | 'subtree', raises: boolean): Claim => {
    const lineage = lineageOf(asked.resource);
    return {
      markKeys: [...lineage.map(subtreeMark), ...(scope === 'exact' ? [`${prefix}exact:${asked.resource}`] : [])],
      raises,
      token: asked.token,
      runId: asked.runId ?? '',
      action: asked.action ?? '',
      expiresAt: asked.expiresAt?.toISOString() ?? '',
    };
  };
  const decide = async (
    redis: RedisStore,
    asked: readonly (GuardedOpen | GuardedWrite)[],
    claims: readonly Claim[],
    change: RedisChange | null,
  ): Promise<unknown> => {
    const script = change === null ? OPEN_SCRIPT : guardedScript(change.script);
    const keys = [...keysOf(floorKey, claims), ...(change?.keys ?? [])];
    const [outcome, ...rest] = (await runScript(redis, script, keys, [
      ...argumentsOf(claims),
      ...(change?.args ?? []),
    ])) as unknown[];
    if (outcome === 'done') return answerOf(rest[0]);
    const [index, reason] = rest as [number, GuardReason];
    const refused = asked[index - 1] as GuardedOpen | GuardedWrite;
    throw new GuardRefusedError(reason, refused.resource, refused.action ?? '', refused);
  };
  return {
    async install(redis) {
      await runScript(redis, INSTALL_SCRIPT, [floorKey], []);
    },
    async open(redis, ...opens) {
      refuseNone(opens);
      const asked = inResourceOrder(opens);
      const claims = asked.map((open) => claimOf(open, scopeOf(open), true));
      await decide(redis, asked, claims, null);
    },
    async write(redis, writes, change) {
      const asked = inResourceOrder(writes);
      const claims = asked.map((write) => claimOf(write, 'exact', isExclusive(write)));
      return decide(redis, asked, claims, change);
    },
    async dangers(redis) {
      const facts = `${await redis.info('memory')}\n${await redis.info('persistence')}`;
      const fact = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(facts)?.[1] ?? '';
      const policy = fact('maxmemory_policy');
      return [
        ...(policy.startsWith('allkeys-')
          ? [`maxmemory-policy is ${policy}: marks can be evicted; it must be noeviction or a volatile one`]
          : []),
        ...(fact('aof_enabled') === '1' ? [] : ['appendonly is off: a restart loses marks; it must be on']),
      ];
    },
  };
}

/** Services are written without types too: a leased write that was taken for an optimistic one would raise no mark. */
function isExclusive({ exclusive }: GuardedWrite): boolean {
  if (typeof exclusive !== 'boolean') throw new TypeError('a guarded write must say whether it is leased: `exclusive`');
  return exclusive;
}

function scopeOf({ scope = 'exact' }: GuardedOpen): 'exact' | 'subtree' {
  if (scope !== 'exact' && scope !== 'subtree') throw new TypeError('the scope of an open is exact or subtree');
  return scope;
}

/** An error that the change returned, instead of raising it, comes inside the answer. */
function answerOf(answer: unknown): unknown {
  if (answer instanceof Error) throw answer;
  return answer ?? null;
}

/** The paths from the root down to the resource itself; throws on what is no path in normal form. */
function lineageOf(resource: string): string[] {
  const segments = resource.split('/');
  const flaw = segments.map(segmentFlaw).find((found) => found !== null) ?? lengthFlaw(segments);
  if (flaw !== null) throw new RangeError(`not a resource path: ${JSON.stringify(resource.slice(0, 200))} ${flaw}`);
  return segments.map((_, index) => segments.slice(0, index + 1).join('/'));
}
