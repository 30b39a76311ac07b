/**
 * `npm run bench`: the numbers of design section 14 that exist now, measured against the built coordinator as a
 * process of its own, with its embedded Postgres and fsync on. Clients are this process. See docs/performance.md.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { dirname } from 'node:path';
import { svgOf } from './chart.mjs';
import { loadGenerated } from './client.mjs';
import { Launcher } from './coordinator.mjs';
import { Crowds } from './crowd.mjs';
import { Echo } from './echo.mjs';
import { describeMachine, round2 } from './environment.mjs';
import { parseOptions, USAGE } from './options.mjs';
import { Peers } from './peers.mjs';
import { tableOf, textOf, writeJson } from './report.mjs';
import { Resources } from './resources.mjs';
import { checks } from './rows/checks.mjs';
import { credentials } from './rows/credentials.mjs';
import { cycles } from './rows/cycles.mjs';
import { expiry } from './rows/expiry.mjs';
import { growth } from './rows/growth.mjs';
import { guards } from './rows/guards.mjs';
import { memory } from './rows/memory.mjs';
import { renewals } from './rows/renewals.mjs';
import { restart } from './rows/restart.mjs';
import { steady } from './rows/steady.mjs';
import { storage } from './rows/storage.mjs';
import { streams } from './rows/streams.mjs';
import { view } from './rows/view.mjs';

/** @import { Options } from './options.mjs' */
/** @import { Bench } from './bench.mjs' */
/** @import { Row } from './report.mjs' */

/** In this order: the largest crowd is made once, and its memory read before anything else is done with it. */
const ROWS = {
  cycles,
  checks,
  streams,
  view,
  credentials,
  guards,
  renewals,
  memory,
  growth,
  restart,
  expiry,
  storage,
  steady,
};

/** Rows beside which peers are measured. */
const COMPARED = new Set(['cycles', 'checks', 'streams']);

/** After it the crowds are not needed. */
const LAST_OF_CROWDS = 'restart';

const EXIT = { done: 0, failed: 1, usage: 2 };

async function main() {
  const resources = new Resources();
  /** @type {Options} */
  let options;
  try {
    options = parseOptions(process.argv.slice(2), new Set(Object.keys(ROWS)));
  } catch (error) {
    process.stderr.write(
      `${error instanceof Error ? error.message : error}\n${USAGE}\nrows: ${Object.keys(ROWS).join(', ')}\n`,
    );
    return EXIT.usage;
  }
  if (options.help) {
    process.stdout.write(`${USAGE}\nrows: ${Object.keys(ROWS).join(', ')}\n`);
    return EXIT.done;
  }
  try {
    await Promise.race([measureAll(options, resources), tooLong(options.timeoutMs), stopSignal()]);
    return EXIT.done;
  } catch (error) {
    process.stderr.write(`bench: ${error instanceof Error ? error.stack : error}\n`);
    return EXIT.failed;
  } finally {
    await resources.end();
  }
}

/** @param {Options} options @param {Resources} resources */
async function measureAll(options, resources) {
  const machine = await describeMachine();
  const launcher = new Launcher(options, resources, await loadGenerated(options.dist));
  const progress = (/** @type {string} */ text) => {
    process.stderr.write(`bench: ${(performance.now() / 1_000).toFixed(1).padStart(6)} s  ${text}\n`);
  };
  const wanted = [...COMPARED].some((name) => options.only === null || options.only.has(name));
  if (wanted) progress('starting the peers that are installed');
  const peers = await Peers.start(resources, wanted);
  const crowds = new Crowds(launcher, progress);
  /** @type {Bench} */
  const bench = { launcher, scale: options.scale, echo: await Echo.start(launcher), peers, crowds, progress };
  const rows = await measureRows(bench, options);
  const environment = {
    ...machine,
    loadAverageAfter: loadavg().map(round2),
    postgres: launcher.postgresFacts,
    peers: peers.state,
  };
  if (options.json !== null) await writeJson(rows, environment, options.json);
  const charts = svgOf(rows);
  if (charts !== null) {
    await mkdir(dirname(options.svg), { recursive: true });
    await writeFile(options.svg, charts);
    progress(`charts in ${options.svg}`);
  }
  // With --json alone stdout is for the machine.
  const out = options.json === '-' ? process.stderr : process.stdout;
  out.write(`\n${tableOf(rows, options)}\n\n${textOf(environment)}\n`);
}

/** @param {Bench} bench @param {Options} options */
async function measureRows(bench, { only, quick }) {
  /** @type {Row[]} */
  const rows = [];
  for (const [name, measure] of Object.entries(ROWS)) {
    if (only !== null && !only.has(name)) continue;
    const measured = await measure(bench);
    // A smoke run is too short to judge anything by.
    rows.push(...(quick ? measured.map((row) => ({ ...row, reached: null })) : measured));
    if (name === LAST_OF_CROWDS) await bench.crowds.dropAll();
  }
  return rows;
}

/** @param {number} milliseconds @returns {Promise<never>} */
function tooLong(milliseconds) {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done after ${milliseconds / 1_000} s`)), milliseconds).unref();
  });
}

/** @returns {Promise<never>} */
function stopSignal() {
  return new Promise((_, reject) => {
    for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
      process.once(name, () => reject(new Error(`stopped by ${name}`)));
    }
  });
}

// Something that is abandoned on failure may keep a socket or a timer; everything has been ended by then.
process.exit(await main());
