import { writeFile } from 'node:fs/promises';

/**
 * One line of the result.
 * @typedef {object} Row
 * @property {string} name
 * @property {number} value
 * @property {string} unit
 * @property {number} [p50]      milliseconds
 * @property {number} [p99]      milliseconds
 * @property {[number, number]} [spread]  lowest and highest of the repetitions
 * @property {number} [ceiling]  the value as a part of what a grpc-js echo did between the repetitions
 * @property {{ client: number, coordinator: number, postgres: number } | null} [cpu]  microseconds an operation
 * @property {{ name: string, value: number } | null} [peer]
 * @property {number | null} [ratio]   to the peer, or to the reference of the row
 * @property {string} [target]
 * @property {boolean | null} [reached]  null: not judged
 * @property {string} [note]
 * @property {import('./chart.mjs').Point} [point]  its place on the charts
 * @property {unknown} [details]
 */

/** @typedef {import('./environment.mjs').Environment} Environment */

/** @param {Row} row */
function complete(row) {
  const { name, value, unit, peer = null, ratio = null, target = null, reached = null, ...more } = row;
  return { name, value, unit, peer, ratio, target, reached, ...more };
}

/** @param {readonly Row[]} rows @param {object} environment @param {string} file '-' for stdout */
export async function writeJson(rows, environment, file) {
  const text = `${JSON.stringify({ rows: rows.map(complete), environment }, null, 2)}\n`;
  if (file === '-') process.stdout.write(text);
  else await writeFile(file, text);
}

const HEAD = [
  'row',
  'value',
  'unit',
  'p50 ms',
  'p99 ms',
  'lowest…highest',
  'of echo',
  'µs cpu cl+co+pg',
  'peer',
  'ratio',
  'target',
  'reached',
];

/** @param {readonly Row[]} rows @param {{ quick: boolean }} options */
export function tableOf(rows, { quick }) {
  const lines = [HEAD, ...rows.map((row) => cellsOf(complete(row), quick))];
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const text = lines.map((line) =>
    line
      .map((cell, column) => pad(cell, widths[column] ?? 0, column))
      .join('  ')
      .trimEnd(),
  );
  const notes = rows.filter(({ note }) => note !== undefined).map(({ name, note }) => `  ${name}: ${note}`);
  return [...text, ...(notes.length === 0 ? [] : ['', ...notes])].join('\n');
}

/** Words to the left, figures to the right. */
function pad(/** @type {string} */ cell, /** @type {number} */ width, /** @type {number} */ column) {
  return [0, 2, 8, 10, 11].includes(column) ? cell.padEnd(width) : cell.padStart(width);
}

/** @param {ReturnType<typeof complete>} row @param {boolean} quick */
function cellsOf(row, quick) {
  const { cpu, spread, peer } = row;
  return [
    row.name,
    figure(row.value),
    row.unit,
    figure(row.p50),
    figure(row.p99),
    spread === undefined ? '' : `${figure(spread[0])}…${figure(spread[1])}`,
    row.ceiling === undefined ? '' : `${Math.round(row.ceiling * 100)} %`,
    cpu === undefined || cpu === null ? '' : `${cpu.client}+${cpu.coordinator}+${cpu.postgres}`,
    peer === null ? '' : `${peer.name} ${figure(peer.value)}`,
    row.ratio === null ? '' : figure(row.ratio),
    row.target ?? '',
    judgement(row, quick),
  ];
}

/** @param {ReturnType<typeof complete>} row @param {boolean} quick */
function judgement({ target, reached }, quick) {
  if (target === null) return '';
  if (quick) return 'smoke run';
  return reached === null ? 'not judged' : reached ? 'yes' : 'NO';
}

/** Three digits that mean something. */
export function figure(/** @type {number | undefined} */ value) {
  if (value === undefined || Number.isNaN(value)) return '';
  if (Math.abs(value) >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

/** @param {Environment} environment */
export function textOf(environment) {
  const e = environment;
  const memory = e.inMemoryDirectory ? ' IS IN MEMORY: fsync costs nothing here' : '';
  const peers = Object.entries(e.peers).map(([name, state]) => `${name}: ${state}`);
  return [
    `machine   ${e.cores} cores (${e.cpu}), ${e.memoryMb} MB, ${e.system}; load average ${e.loadAverageBefore.join(' ')} before, ${e.loadAverageAfter.join(' ')} after`,
    `software  Node ${e.node}; Postgres ${e.postgres.server_version}, fsync ${e.postgres.fsync}, synchronous_commit ${e.postgres.synchronous_commit}`,
    `disk      ${e.directory}${memory}; write and fdatasync of 8 kB ${e.fdatasyncMs} ms`,
    `peers     ${peers.join('; ')}`,
  ].join('\n');
}
