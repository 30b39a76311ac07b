import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * How much of everything: the full run, and a smoke run that only shows that every row can be measured.
 *
 * @typedef {object} Scale
 * @property {number} repetitions   of each measurement; the table shows the median and the spread
 * @property {number} repetitionMs
 * @property {number} warmUpMs      before the first repetition, not counted
 * @property {number} restMs        for the machine to come to rest before each measurement
 * @property {number} memoryRestMs  before memory is read
 * @property {number} echoMs        of each measurement of the gRPC ceiling that runs between repetitions
 * @property {number} peerMs        of each measurement of a peer, likewise
 * @property {number[]} crowds      live leases of the growth row, the first is the reference
 * @property {number} restarts      of each kind
 * @property {number} steadySeconds of each of the two phases
 * @property {number} checkedLeases leases that fence checks are spread over
 * @property {{ leases: number, marginSeconds: number }} expiry  leases that expire at once, and how long after all are had
 * @property {{ leases: number }} storage   leases that come and go
 * @property {{ leases: number, ttlSeconds: number, holdSeconds: number }} renewals
 */

/**
 * @typedef {object} Options
 * @property {Set<string> | null} only   names of rows; null: all
 * @property {boolean} quick
 * @property {boolean} help
 * @property {string | null} json        file to write, '-' for stdout, null for none
 * @property {string} svg                file of the charts
 * @property {string} dist               the build that is measured
 * @property {string | null} profileDir  where the coordinator leaves CPU profiles
 * @property {number} timeoutMs          the whole run ends after this, whatever happens
 * @property {Scale} scale
 */

export const USAGE = `usage: npm run bench -- [options]
  --only NAME,NAME   only these rows
  --minutes N        of each phase of the steadiness row (default 2; 10 for the figure of the design)
  --quick            a smoke run of about a minute; it judges no target
  --json [FILE]      also as JSON, to FILE or to stdout
  --svg FILE         where the charts go (default test-results/bench.svg)
  --dist DIR         measure another build, to compare two of them
  --profile DIR      the coordinators write CPU profiles to DIR`;

/** @type {Omit<Scale, 'steadySeconds'>} */
const FULL = {
  repetitions: 5,
  repetitionMs: 4_000,
  warmUpMs: 3_000,
  restMs: 500,
  memoryRestMs: 10_000,
  echoMs: 1_500,
  peerMs: 2_000,
  crowds: [1_000, 10_000, 100_000],
  restarts: 3,
  checkedLeases: 1_000,
  expiry: { leases: 100_000, marginSeconds: 20 },
  storage: { leases: 50_000 },
  renewals: { leases: 40_000, ttlSeconds: 20, holdSeconds: 60 },
};

/** @type {Omit<Scale, 'steadySeconds'>} */
const QUICK = {
  repetitions: 2,
  repetitionMs: 250,
  warmUpMs: 200,
  restMs: 50,
  memoryRestMs: 50,
  echoMs: 100,
  peerMs: 100,
  crowds: [50, 300],
  restarts: 1,
  checkedLeases: 50,
  expiry: { leases: 300, marginSeconds: 3 },
  storage: { leases: 200 },
  renewals: { leases: 200, ttlSeconds: 3, holdSeconds: 2 },
};

/**
 * @param {readonly string[]} args
 * @param {ReadonlySet<string>} rowNames
 * @returns {Options}
 */
export function parseOptions(args, rowNames) {
  const given = readFlags(args);
  const quick = given.has('quick');
  const minutes = quick ? 0.025 : numberOf(given.get('minutes') ?? '2', 0.1, 120);
  const only = given.has('only') ? namesOf(String(given.get('only')), rowNames) : null;
  const profile = given.get('profile');
  const root = fileURLToPath(new URL('../../', import.meta.url));
  return {
    only,
    quick,
    help: given.has('help'),
    json: given.has('json') ? (given.get('json') ?? '-') : null,
    svg: resolve(given.get('svg') ?? join(root, 'test-results', 'bench.svg')),
    dist: resolve(root, given.get('dist') ?? 'dist'),
    profileDir: profile === undefined || profile === null ? null : resolve(profile),
    timeoutMs: quick ? 300_000 : (45 + 2 * minutes) * 60_000,
    scale: { ...(quick ? QUICK : FULL), steadySeconds: minutes * 60 },
  };
}

const TAKES_VALUE = new Set(['only', 'minutes', 'dist', 'profile', 'svg']);
const FLAGS = new Set([...TAKES_VALUE, 'quick', 'json', 'help']);

/** util.parseArgs knows no option whose value may be left out, as --json's may. */
function readFlags(/** @type {readonly string[]} */ args) {
  /** @type {Map<string, string | null>} */
  const given = new Map();
  for (let i = 0; i < args.length; i += 1) {
    const [flag, attached] = String(args[i]).split(/=(.*)/s);
    const name = flag?.startsWith('--') ? flag.slice(2) : '';
    if (!FLAGS.has(name)) throw new Error(`unknown argument ${args[i]}`);
    const next = args[i + 1];
    const following = attached ?? (next !== undefined && !next.startsWith('--') ? next : null);
    if (TAKES_VALUE.has(name) && following === null) throw new Error(`--${name} needs a value`);
    const takes = TAKES_VALUE.has(name) || name === 'json';
    if (takes && attached === undefined && following !== null) i += 1;
    given.set(name, takes ? following : null);
  }
  return given;
}

function numberOf(/** @type {string} */ text, /** @type {number} */ least, /** @type {number} */ most) {
  const value = Number(text);
  if (!(value >= least && value <= most)) throw new Error(`${text} is not a number from ${least} to ${most}`);
  return value;
}

function namesOf(/** @type {string} */ text, /** @type {ReadonlySet<string>} */ known) {
  const names = text.split(',').map((name) => name.trim());
  for (const name of names) if (!known.has(name)) throw new Error(`no row ${name}; there are ${[...known].join(', ')}`);
  return new Set(names);
}
