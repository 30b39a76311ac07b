import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from './client.mjs';
import { Database } from './database.mjs';
import { endPostgresOf, endProcess, postmasterOf } from './resources.mjs';

/** @import { Options } from './options.mjs' */
/** @import { Resources } from './resources.mjs' */
/** @import { Gen } from './client.mjs' */

const START_TIMEOUT_MS = 60_000;

/** What a coordinator is started with. */
export class Launcher {
  /** What the embedded Postgres of the first coordinator says of itself. @type {Record<string, string>} */
  postgresFacts = {};
  /** @type {Promise<Coordinator> | null} */
  #shared = null;

  /** @param {Options} options @param {Resources} resources @param {Gen} gen */
  constructor(options, resources, gen) {
    this.options = options;
    this.resources = resources;
    this.gen = gen;
  }

  /** One with an empty embedded Postgres of its own. @param {string} name */
  async fresh(name) {
    const directory = await this.resources.directory(name);
    const dataDir = join(directory, 'data');
    this.resources.add(() => endPostgresOf(dataDir));
    const coordinator = await this.start(dataDir);
    await coordinator.putMap();
    this.postgresFacts = await (await coordinator.database()).facts();
    return coordinator;
  }

  /**
   * One for a row. A smoke run has one for all of them, as starting them would take most of its time.
   * @param {string} name
   */
  async lend(name) {
    if (!this.options.quick) return this.fresh(name);
    this.#shared ??= this.fresh('shared');
    return this.#shared;
  }

  /** @param {Coordinator} coordinator */
  async takeBack(coordinator) {
    if (coordinator !== (await this.#shared)) await coordinator.stop();
  }

  /** @param {string} dataDir */
  async start(dataDir) {
    const coordinator = new Coordinator(this, dataDir);
    this.resources.add(() => coordinator.stop());
    await coordinator.started();
    return coordinator;
  }
}

/** A coordinator as users run it: a process of its own, with its embedded Postgres. */
export class Coordinator {
  #launcher;
  #child;
  #exited;
  #startedAt = performance.now();
  #log = '';
  #suspended = false;
  /** @type {import('./client.mjs').Clients | null} */
  #clients = null;
  /** @type {Database | null} */
  #database = null;
  readyMs = 0;

  /** @param {Launcher} launcher @param {string} dataDir */
  constructor(launcher, dataDir) {
    this.#launcher = launcher;
    this.dataDir = dataDir;
    const { dist, profileDir } = launcher.options;
    const main = join(dist, 'main.js');
    if (!existsSync(main)) throw new Error(`${main} is missing: run \`npm run build\` first`);
    const profiling = profileDir === null ? [] : ['--cpu-prof', '--cpu-prof-dir', profileDir];
    const probe = new URL('probe.mjs', import.meta.url).href;
    this.#child = spawn(process.execPath, ['--expose-gc', ...profiling, '--import', probe, main], {
      env: {
        PATH: process.env.PATH ?? '',
        WRIT_GRPC_PORT: '0',
        WRIT_HTTP_PORT: '0',
        WRIT_DATA_DIR: dataDir,
        WRIT_LOG_LEVEL: 'warn',
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#exited = once(this.#child, 'exit');
    this.#child.stderr?.setEncoding('utf8').on('data', (text) => {
      this.#log = (this.#log + text).slice(-20_000);
    });
  }

  get pid() {
    return this.#child.pid ?? 0;
  }

  get clients() {
    if (this.#clients === null) throw new Error('the coordinator has not started');
    return this.#clients;
  }

  /** What the coordinator logged: warnings and errors. */
  get log() {
    return this.#log;
  }

  async started() {
    const ready = await this.#readyLine();
    this.readyMs = performance.now() - this.#startedAt;
    const tokens = JSON.parse(await readFile(join(this.dataDir, 'dev-tokens.json'), 'utf8'));
    this.#clients = connect(this.#launcher.gen, ready.grpc, tokens);
    this.http = ready.http;
    this.grpc = ready.grpc;
    this.tokens = tokens;
  }

  async #readyLine() {
    const failed = this.#exited.then(([code]) => {
      throw new Error(`the coordinator ended with ${code} before it was ready:\n${this.#log}`);
    });
    failed.catch(() => undefined);
    const lines = createInterface({ input: /** @type {import('node:stream').Readable} */ (this.#child.stdout) });
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    const [line] = await Promise.race([once(lines, 'line', { signal }), failed]);
    const ready = JSON.parse(String(line));
    if (ready.event !== 'ready') throw new Error(`unexpected first line: ${line}`);
    return /** @type {{ grpc: string, http: string }} */ (ready);
  }

  async putMap() {
    await this.clients.putConflictMap(BENCH_MAP);
  }

  /** Its Postgres, for what only the database knows. */
  async database() {
    this.#database ??= await Database.of(this.dataDir);
    return this.#database;
  }

  /** The ids whose processor time is the coordinator's. */
  async processes() {
    return { coordinator: this.pid, postmaster: await postmasterOf(this.dataDir) };
  }

  /**
   * Memory after full garbage collections, with a rest between them, as pages are given back by and by.
   * @param {number} restMs
   */
  async memory(restMs) {
    await this.#collect();
    await pause(restMs);
    return this.#collect();
  }

  async #collect() {
    const answer = once(this.#child, 'message');
    this.#child.send('memory');
    const [{ memory }] = await answer;
    return /** @type {{ rss: number, heapUsed: number, external: number }} */ (memory);
  }

  /** The most that was ever resident, in bytes; NaN where the system does not tell. */
  async peakRss() {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8').catch(() => '');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) * 1_024;
  }

  /** Stopped, so that it takes nothing from another one that is being measured. */
  suspend() {
    this.#suspended = true;
    process.kill(this.pid, 'SIGSTOP');
  }

  async resume() {
    process.kill(this.pid, 'SIGCONT');
    this.#suspended = false;
    // Its last heartbeat is too old to be believed; it serves again after the next one.
    for (let i = 0; i < 200; i += 1) {
      const answer = await fetch(`http://${this.http}/readyz`).catch(() => null);
      if (answer?.status === 200) return;
      await pause(50);
    }
    throw new Error(`the coordinator did not come back after a pause:\n${this.#log}`);
  }

  async stop() {
    await this.#leave();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    if (this.#suspended) process.kill(this.pid, 'SIGCONT');
    await endProcess(this.pid, 'SIGTERM');
    await this.#exited;
  }

  /** Without warning; its Postgres lives on. */
  async kill9() {
    await this.#leave();
    await endProcess(this.pid, 'SIGKILL');
    await this.#exited;
  }

  async #leave() {
    this.#clients?.close();
    await this.#database?.end();
    this.#database = null;
  }

  /** The same data directory, another process. */
  again() {
    return this.#launcher.start(this.dataDir);
  }
}

/** Paths that the rows make up, written by an action that needs a lease. */
const BENCH_MAP = `
version: 1
kinds:
  - pattern: item/{name...}
    ttl: 60s
    max_ttl: 1h
    max_hold: 12h
    actions:
      set: { access: write, concurrency: lease, change_class: shared_pointer }
  - pattern: seen/{name...}
    validation: view
    ttl: 60s
    max_ttl: 1h
    max_hold: 12h
    actions:
      set: { access: write, concurrency: lease, change_class: shared_pointer }
`;
