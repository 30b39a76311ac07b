/**
 * The Lua of the guard for a target's own Redis (design: fencing; C7, C1b). A script is one step: nothing runs between
 * the comparison of the marks and the change, so no locks are needed.
 *
 * **Keys.** First the floor; then for each claim the subtree marks from the root of the resource down to itself, and its
 * own mark after them, unless the claim is the open of a subtree. Then those of the change. All of them are in KEYS, so
 * that a cluster refuses a script whose keys live apart.
 *
 * **Tokens** are compared as decimal strings, the longer one being the greater, and never as numbers: numbers in Lua are
 * doubles, which are exact up to 2^53. Tokens are microseconds since 1970 and stay below that until the year 2255, and
 * so does the clock that this script compares them with; but a token that somebody made up need not.
 *
 * **The floor** is the moment at which the guard was installed here, or installed anew after its marks were lost. Tokens
 * follow the clock, so whatever was granted before is refused: marks that are gone must not let old holders in. Without
 * a floor nothing is let in at all.
 */

const PRELUDE = `
-- Of a claim in ARGV; see argumentsOf.
local FIELDS = 6

local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

local function later_than_clock(token)
  local time = redis.call('TIME')
  return less(string.format('%.0f', (tonumber(time[1]) + 3600) * 1000000 + tonumber(time[2])), token)
end

-- Why a claim is refused; nil: it is not.
local function verdict(token, floor, mark_keys)
  if not string.find(token, '^[1-9]%d*$') then return 'no_token' end
  if not floor then return 'no_mark' end
  if later_than_clock(token) then return 'future_token' end
  if less(token, floor) then return 'stale_token' end
  for _, key in ipairs(mark_keys) do
    local mark = redis.call('HGET', key, 'token')
    if mark and less(token, mark) then return 'stale_token' end
  end
end

local function raise(key, token, run, action, expires_at)
  local mark = redis.call('HGET', key, 'token')
  if mark and less(token, mark) then return end
  if mark ~= token then
    local time = redis.call('TIME')
    redis.call('HSET', key, 'raised_at', time[1] .. '.' .. string.format('%06d', tonumber(time[2])))
    -- What another holder left behind says nothing about this one.
    redis.call('HDEL', key, 'expires_at')
  end
  redis.call('HSET', key, 'token', token, 'run_id', run, 'action', action)
  if expires_at ~= '' then redis.call('HSET', key, 'expires_at', expires_at) end
end

local floor = redis.call('GET', KEYS[1])
local claims = {}
local next_key, next_arg = 2, 2
for index = 1, tonumber(ARGV[1]) do
  local claim = { raises = ARGV[next_arg + 1] == '1', token = ARGV[next_arg + 2], keys = {} }
  claim.run, claim.action, claim.expires_at = ARGV[next_arg + 3], ARGV[next_arg + 4], ARGV[next_arg + 5]
  for _ = 1, tonumber(ARGV[next_arg]) do
    table.insert(claim.keys, KEYS[next_key])
    next_key = next_key + 1
  end
  next_arg = next_arg + FIELDS
  local reason = verdict(claim.token, floor, claim.keys)
  if reason then return { 'refused', index, reason } end
  table.insert(claims, claim)
end
-- All or none: marks are raised only when every claim is let in.
for _, claim in ipairs(claims) do
  if claim.raises then raise(claim.keys[#claim.keys], claim.token, claim.run, claim.action, claim.expires_at) end
end
`;

/** Makes the floor of KEYS[1] unless there is one. */
export const INSTALL_SCRIPT = `
local time = redis.call('TIME')
redis.call('SET', KEYS[1], time[1] .. string.format('%06d', tonumber(time[2])), 'NX')
`;

/** Raises marks, and nothing else. */
export const OPEN_SCRIPT = `${PRELUDE}
return { 'done' }
`;

/**
 * The guard before a change, in one script. The change is written like any script, with KEYS and ARGV of its own; what it
 * returns is the answer. Its text is part of the program: what comes from outside goes into ARGV.
 */
export function guardedScript(change: string): string {
  return `${PRELUDE}
local function change(KEYS, ARGV)
${change}
end

local own_keys, own_args = {}, {}
for at = next_key, #KEYS do table.insert(own_keys, KEYS[at]) end
for at = next_arg, #ARGV do table.insert(own_args, ARGV[at]) end
return { 'done', change(own_keys, own_args) }
`;
}

/** What a claim is in KEYS and ARGV. */
export interface Claim {
  /** Marks that count for it, the one that it would raise last. */
  readonly markKeys: readonly string[];
  readonly raises: boolean;
  readonly token: bigint;
  readonly runId: string;
  readonly action: string;
  /** ISO 8601; empty: not known. */
  readonly expiresAt: string;
}

export function keysOf(floorKey: string, claims: readonly Claim[]): string[] {
  return [floorKey, ...claims.flatMap(({ markKeys }) => markKeys)];
}

export function argumentsOf(claims: readonly Claim[]): string[] {
  const one = ({ markKeys, raises, token, runId, action, expiresAt }: Claim) => [
    String(markKeys.length),
    raises ? '1' : '0',
    token.toString(),
    runId,
    action,
    expiresAt,
  ];
  return [String(claims.length), ...claims.flatMap(one)];
}
