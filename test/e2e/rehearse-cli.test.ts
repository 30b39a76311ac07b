import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import { CheckWithoutGuard } from '../support/broken-targets/check-without-guard.js';
import { rehearsalConfig } from '../support/broken-targets/rehearsal.js';
import { runTarget } from '../support/broken-targets/run-target.js';
import { startCli } from '../support/cli-process.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

/** `writ rehearse` as the guide has it: the example's service, its configuration, and a kind that demands a rehearsal. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLE = join(ROOT, 'examples/rehearsal');

let coordinator: CoordinatorProcess;
let directory: string;
let database: TestDatabase;
let service: { readonly child: ChildProcess; readonly url: string };
let proxyPort: number;

beforeAll(async () => {
  [coordinator, directory, database, proxyPort] = await Promise.all([
    startCoordinatorProcess(),
    makeTestDirectory('rehearse'),
    createTestDatabase(),
    freePort(),
  ]);
  service = await startService();
  const config = await readFile(join(EXAMPLE, 'rehearsal.yaml'), 'utf8');
  await writeFile(join(directory, 'rehearsal.yaml'), config.replaceAll('17410', String(proxyPort)));
  expect(await writ('map', 'apply', join(EXAMPLE, 'map.yaml'))).toMatchObject({ code: 0 });
});

afterAll(async () => {
  service?.child.kill('SIGTERM');
  if (service?.child.exitCode === null) await once(service.child, 'exit');
  await coordinator?.stop();
  await database?.drop();
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
});

async function startService() {
  const child = spawn(process.execPath, [join(EXAMPLE, 'service.mjs')], {
    env: {
      PATH: process.env.PATH ?? '',
      COORDINATOR: `127.0.0.1:${proxyPort}`,
      TARGET_TOKEN: coordinator.tokens.target,
      DATABASE_URL: database.url,
      PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { child, url };
}

const writ = (...args: string[]) =>
  startCli({ WRIT_ENDPOINT: coordinator.grpc, WRIT_DATA_DIR: coordinator.dataDir }, args).ended;

/** Ends with 0 when a run of its own gets authority over the resource, with 3 when it is refused. */
const promote = (env: string) =>
  writ('exec', '--resource', `release/${env}`, '--action', 'promote', '--', process.execPath, '-e', '');

describe('a kind that demands a rehearsal', () => {
  it('is opened by the rehearsal of the guide, and closed again by a bad one', { timeout: 240_000 }, async () => {
    const before = await promote('prod-eu');
    expect(before.code).toBe(3);
    expect(before.stderr).toContain('writ rehearse --target URL --config FILE --record');

    const config = join(directory, 'rehearsal.yaml');
    const rehearsed = await writ('rehearse', '--target', service.url, '--config', config, '--record');
    expect(rehearsed.code, rehearsed.stdout + rehearsed.stderr).toBe(0);
    expect(rehearsed.stdout).toMatch(/^passed +release\/rehearsal promote +write_past_open:verdict \(C7\)/m);
    expect(rehearsed.stdout).toMatch(
      /^not applicable +release\/rehearsal promote +resend .*\n +no write .* \{idempotency_key\}/m,
    );
    expect(rehearsed.stdout).toMatch(/Recorded for the kind release\/\{env\}: it counts until/);
    expect(rehearsed.stdout).toMatch(/^passed +release\/rehearsal promote: \d+ passed/m);
    expect(await promote('prod-eu')).toMatchObject({ code: 0 });

    const listed = JSON.parse((await writ('--json', 'map', 'rehearsals')).stdout) as { rehearsals: object[] };
    expect(listed.rehearsals).toEqual([
      expect.objectContaining({
        kind: 'release/{env}',
        required: true,
        counts: true,
        targetName: 'release-api',
        recordedBy: 'admin',
      }),
    ]);

    // The service does not find the coordinator any more, so that nothing can be played: that is no good result.
    await writeFile(config, (await readFile(config, 'utf8')).replace(String(proxyPort), String(await freePort())));
    const broken = await writ('rehearse', '--target', service.url, '--config', config, '--record');
    expect(broken.code).toBe(1);
    expect(broken.stdout).toMatch(/^undecided +release\/rehearsal promote +conflict/m);
    expect(broken.stdout).toContain('it does not count, since its last rehearsal was not passed');
    expect((await promote('prod-eu')).code).toBe(3);
    // And the rehearsal itself can still be played.
    expect((await promote('rehearsal')).code).toBe(3);
  });
});

describe('writ rehearse', () => {
  it('ends with 7 on a breach, and tells it to machines', { timeout: 120_000 }, async () => {
    const own = await createTestDatabase();
    const port = await freePort();
    const target = await runTarget(CheckWithoutGuard, {
      databaseUrl: own.url,
      coordinator: `127.0.0.1:${port}`,
      token: coordinator.tokens.target,
      runKey: 'key',
    });
    try {
      expect(await writ('map', 'apply', await mapWithoutDemand())).toMatchObject({ code: 0 });
      const config = join(directory, 'broken.yaml');
      await writeFile(config, rehearsalConfig({ runKey: 'key', proxyPort: port, kinds: ['release'] }));
      const name = 'write_past_open:after_check';
      const args = ['rehearse', '--target', target.url, '--config', config, '--case', name];
      const { code, stdout } = await writ('--json', ...args);
      expect(code, stdout).toBe(7);
      expect(JSON.parse(stdout)).toMatchObject({
        passed: false,
        target: 'svc:shop',
        resources: [
          { resource: 'release/rehearsal', passed: false, cases: [{ name, outcome: 'failed', proves: ['C7'] }] },
        ],
        recorded: [],
      });
      const told = await writ(...args);
      expect(told.stdout).toMatch(/^failed +release\/rehearsal promote +write_past_open:after_check/m);
      expect(told.stdout).toContain("· A's write has been let in, and stands still (after_check)");
    } finally {
      await target.stop();
      await own.drop();
    }
  });

  it('says at once that nothing answers at the target, and plays nothing (5)', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const { code, stdout, stderr } = await writ(
      'rehearse',
      '--target',
      url,
      '--config',
      join(EXAMPLE, 'rehearsal.yaml'),
    );
    expect([code, stdout]).toEqual([5, '']);
    expect(stderr).toContain(`Nothing answers at the target ${url}: `);
    expect(stderr).toContain('Nothing was rehearsed.');
  });

  it('ends with 2 for what is wrong as it stands, all of it at once', async () => {
    const config = join(directory, 'wrong.yaml');
    await writeFile(config, 'version: 1\ntarget: { nam: x }\nresources: []\n');
    const { code, stderr } = await writ('rehearse', '--target', service.url, '--config', config);
    expect(code).toBe(2);
    for (const path of ['target.nam', 'runs', 'resources']) expect(stderr).toContain(`${path}: `);
    const good = join(EXAMPLE, 'rehearsal.yaml');
    for (const args of [
      ['--target', 'service', '--config', good],
      ['--target', service.url, '--config', join(directory, 'none.yaml')],
      ['--target', service.url, '--config', good, '--case', 'nothing'],
      ['--target', service.url, '--config', good, '--case', 'conflict', '--record'],
    ])
      expect(await writ('rehearse', ...args), args.join(' ')).toMatchObject({ code: 2, stdout: '' });
  });

  it('ends with 2 for another change class than the map has, which would be rehearsed in its place', async () => {
    const other = join(directory, 'other-class.yaml');
    const good = await readFile(join(directory, 'rehearsal.yaml'), 'utf8');
    await writeFile(other, good.replace('change_class: shared_pointer', 'change_class: derived'));
    const { code, stdout, stderr } = await writ('rehearse', '--target', service.url, '--config', other);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(
      'resources[0].change_class: the conflict map says shared_pointer for promote of release/{env}',
    );
  });

  it('ends with 2 where it cannot listen, and names the key that says where', async () => {
    const taken = join(directory, 'taken.yaml');
    const good = await readFile(join(EXAMPLE, 'rehearsal.yaml'), 'utf8');
    await writeFile(taken, good.replaceAll('127.0.0.1:17410', coordinator.grpc));
    const { code, stderr } = await writ('rehearse', '--target', service.url, '--config', taken);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(
        `coordinator.proxy.listen: listen EADDRINUSE: address already in use ${coordinator.grpc}`,
      ),
    ]);
  });
});

async function mapWithoutDemand(): Promise<string> {
  const file = join(directory, 'map.yaml');
  const text = await readFile(join(EXAMPLE, 'map.yaml'), 'utf8');
  await writeFile(file, text.replace('require_rehearsal: true', 'require_rehearsal: false'));
  return file;
}

describe('the guide', () => {
  it('shows the example as it is', async () => {
    const guide = await readFile(join(ROOT, 'docs/rehearsals.md'), 'utf8');
    for (const file of ['service.mjs', 'rehearsal.yaml', 'map.yaml'])
      expect(guide, file).toContain(await readFile(join(EXAMPLE, file), 'utf8'));
  });
});
