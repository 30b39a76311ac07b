import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, type CliEnded, type CliProcess, startCli } from '../support/cli-process.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

// The CLI as users run it, against a coordinator as they run it.

const MAP = `# kept with the map
version: 1
profiles: { fast: { ttl: 3s, max_ttl: 5m, max_hold: 30m } }
kinds:
  - { pattern: "release/{env}", extends: fast, actions: { promote: { concurrency: lease, change_class: shared_pointer } } }
  - { pattern: "deployment/{env}", extends: fast, actions: { deploy: { concurrency: lease, change_class: shared_pointer } } }
  - { pattern: "image-tag/{env}", extends: fast, actions: { set: { concurrency: lease, change_class: shared_pointer } } }
  - { pattern: "job/{name}", extends: fast, progress_window: 3s, actions: { work: { concurrency: lease, change_class: derived } } }
  - { pattern: "service-token/{tenant}", extends: fast, actions: { rotate: { concurrency: lease, change_class: shared_document } } }
  - { pattern: "integration-config/{tenant}", extends: fast, actions: { edit: { change_class: derived } } }
implies:
  - { when: { pattern: "deployment/{env}", access: write }, touches: [ { resource: "image-tag/{env}", access: write, actions: [set] } ] }
conflicts: [ { between: ["service-token/{tenant}", "integration-config/{tenant}"], because: the config embeds the token reference } ]
tasks: { deploy: { params: [env], entries: [ { resource: "deployment/{env}", access: write, actions: [deploy] } ] } }
`;

let coordinator: CoordinatorProcess;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-cli-e2e-'));
  coordinator = await startCoordinatorProcess();
  await writeFile(join(directory, 'map.yaml'), MAP);
  expect((await writ('map', 'apply', join(directory, 'map.yaml'), '--reason', 'first')).code).toBe(0);
});
afterAll(async () => {
  await coordinator?.stop();
  await rm(directory, { recursive: true, force: true });
});

function start(...args: string[]): CliProcess {
  return startWith({ WRIT_ENDPOINT: coordinator.grpc, WRIT_DATA_DIR: coordinator.dataDir }, ...args);
}

const startWith = (env: Readonly<Record<string, string>>, ...args: string[]): CliProcess => startCli(env, args);

const writ = (...args: string[]): Promise<CliEnded> => start(...args).ended;

async function json<T = Record<string, never>>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await writ(...args, '--json');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
  return JSON.parse(stdout) as T;
}

interface LeaseJson {
  readonly leaseId: string;
  readonly runId: string;
  readonly entries: { readonly resource: string; readonly fencingToken: string; readonly impliedBy?: string }[];
}

async function newRun(...allow: string[]): Promise<string> {
  const { run } = await json<{ run: { runId: string } }>(
    'run',
    'create',
    '--purpose',
    'e2e',
    ...allow.flatMap((one) => ['--allow', one]),
  );
  return run.runId;
}

describe('by hand', () => {
  it('takes, checks, refuses, releases and explains', async () => {
    const [mine, other] = [await newRun('release/{env}=promote', 'deployment/{env}=*'), await newRun('{any...}=*')];
    const { lease } = await json<{ lease: LeaseJson }>(
      'lease',
      'acquire',
      '--run',
      mine,
      '--resource',
      'deployment/staging',
      '--ttl',
      '60s',
    );
    expect(lease.entries.map(({ resource, impliedBy = '' }) => [resource, impliedBy])).toEqual([
      ['deployment/staging', ''],
      ['image-tag/staging', 'implies[0]'],
    ]);
    const token = lease.entries[0]?.fencingToken ?? '';

    const refused = await writ(
      'lease',
      'acquire',
      '--run',
      other,
      '--resource',
      'image-tag/staging',
      '--request-id',
      'e2e-refused',
    );
    expect(refused.code).toBe(3);
    for (const part of ['refused (held)', 'image-tag/staging', 'implies[0]', 'until', 'what to do'])
      expect(refused.stdout).toContain(part);
    expect(refused.stdout).not.toContain(mine);

    const check = (...more: string[]) => writ('check', '--lease', lease.leaseId, '--action', 'deploy', ...more);
    expect((await check('--resource', 'deployment/staging', '--token', token, '--run', mine)).code).toBe(0);
    expect((await check('--resource', 'deployment/prod', '--token', token)).code).toBe(4);
    expect((await check('--resource', 'deployment/staging', '--token', '7')).stdout).toContain('stale_token');

    const who = await writ('who', 'image-tag/staging');
    for (const part of ['image-tag/{env}', lease.leaseId, mine]) expect(who.stdout).toContain(part);

    expect((await writ('lease', 'release', lease.leaseId, '--run', mine)).stdout).toContain('Released');
    expect((await writ('lease', 'release', lease.leaseId, '--run', mine)).stdout).toContain('ended before (released)');
    expect((await check('--resource', 'deployment/staging', '--token', token)).code).toBe(4);
    const why = await writ('why', 'e2e-refused');
    expect(why.stdout).toContain('acquire refused');
    expect(why.stdout).not.toContain('{"');
    expect((await writ('why', 'nobody-asked')).code).toBe(6);
    expect((await writ('lease', 'get', '0'.repeat(32))).code).toBe(6);
  });

  it('says who is in the way by a rule, to a runner without names', async () => {
    const run = await newRun('service-token/{tenant}=rotate');
    const { lease } = await json<{ lease: LeaseJson }>(
      'lease',
      'acquire',
      '--run',
      run,
      '--resource',
      'service-token/acme',
      '--ttl',
      '60s',
    );
    const asOperator = await writ('who', 'integration-config/acme');
    for (const part of [
      'service-token/acme',
      'conflicts[0]',
      'the config embeds the token reference',
      run,
      lease.leaseId,
    ])
      expect(asOperator.stdout).toContain(part);
    // The dev token of the runner role is the principal that holds it, so it is told which of its own leases it is.
    const asRunner = await writ('who', 'integration-config/acme', '--as', 'runner');
    for (const part of ['service-token/acme', 'conflicts[0]', lease.leaseId]) expect(asRunner.stdout).toContain(part);
    const { resource, kind, blockers } = await json<{
      resource: string;
      kind: string;
      blockers: { rule: string; leaseId?: string }[];
    }>('who', 'integration-config/acme', '--as', 'runner');
    expect([resource, kind]).toEqual(['integration-config/acme', 'integration-config/{tenant}']);
    expect(blockers).toMatchObject([{ rule: 'conflicts[0]' }]);
    expect(blockers[0]?.leaseId).toBe(lease.leaseId);
    expect((await writ('run', 'stop', run, '--reason', 'e2e')).code).toBe(0);
  });

  it('stops runs', async () => {
    const run = await newRun('release/{env}=promote');
    await json('lease', 'acquire', '--run', run, '--resource', 'release/stopped', '--ttl', '60s');
    expect((await writ('run', 'stop', run, '--reason', 'e2e')).code).toBe(0);
    expect((await writ('lease', 'acquire', '--run', run, '--resource', 'release/stopped')).code).toBe(3);
    expect((await writ('run', 'get', run)).stdout).toContain('stopped');
  });

  it('prints the map as it was put, and compares', async () => {
    expect((await writ('map', 'get')).stdout).toBe(MAP);
    expect((await writ('map', 'diff', join(directory, 'map.yaml'), '--exit-code')).code).toBe(0);
    expect((await writ('map', 'apply', join(directory, 'map.yaml'), '--expected-version', '99')).code).toBe(3);
    expect((await writ('map', 'matrix')).stdout).toMatch(/^deploy +itself +can +deployment\/\{env\} +both name it$/m);
    expect((await writ('map', 'explain', 'deployment/x', 'image-tag/x')).stdout).toContain('They conflict');
  });

  it('says how things are', async () => {
    expect((await writ('status')).stdout).toContain('up');
    const doctor = await writ('doctor');
    expect([doctor.code, doctor.stdout.includes('migrations')]).toEqual([0, true]);
  });

  it.runIf(existsSync('/dev/full')).each([[''], ['--json']])(
    'a result %s that could not be written is no success',
    (json) => {
      const script = `"$0" "$1" guard sql ${json} > /dev/full`;
      const { status, stderr } = spawnSync('sh', ['-c', script, process.execPath, CLI], { encoding: 'utf8' });
      expect([status, stderr]).toEqual([1, expect.stringContaining('Standard output cannot be written: ENOSPC')]);
      if (json !== '') expect(JSON.parse(stderr)).toMatchObject({ exitCode: 1 });
    },
  );

  it('a file that cannot be made is a wrong argument', async () => {
    const { code, stderr } = await writ('audit', 'export', '--output', join(directory, 'map.yaml', 'x'));
    expect([code, stderr]).toEqual([2, expect.stringContaining('map.yaml/x cannot be written')]);
  });

  it('does not let a role do what it may not (77)', async () => {
    expect((await writ('audit', 'checkpoint', '--as', 'runner')).code).toBe(77);
  });
});

describe('exec', () => {
  /** For as long as a command may stand still on a machine that does. */
  const release = (name: string) => ['exec', '--resource', `release/${name}`, '--action', 'promote', '--ttl', '60s'];

  /** What was said but for a renewal that was overdue: a machine that stands still makes it so. */
  const besidesHurry = ({ stderr }: CliEnded): string =>
    stderr.replace(/^writ: the lease is (in jeopardy, .*|safe again\.)\n/gm, '');

  it('gives the command what it needs, returns its code, and cleans up', async () => {
    const script = 'env | grep ^WRIT_; stat -c %a $WRIT_ENTRIES_FILE; cat $WRIT_ENTRIES_FILE; exit 7';
    const { code, stdout } = await writ(...release('env'), '--', 'sh', '-c', script);
    expect(code).toBe(7);
    const variable = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(stdout)?.[1] ?? '';
    const entries = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as LeaseJson['entries'];
    expect(entries).toMatchObject([
      { resource: 'release/env', actions: ['promote'], fencingToken: variable('WRIT_FENCING_TOKEN') },
    ]);
    expect([variable('WRIT_NAMESPACE'), /^600$/m.test(stdout)]).toEqual(['default', true]);
    expect(existsSync(variable('WRIT_ENTRIES_FILE'))).toBe(false);
    expect(
      (await json<{ lease: { endReason: string } }>('lease', 'get', variable('WRIT_LEASE_ID'))).lease.endReason,
    ).toBe('END_REASON_RELEASED');
    const { run } = await json<{ run: { state: string; allowed: unknown } }>('run', 'get', variable('WRIT_RUN_ID'));
    expect(run).toMatchObject({
      state: 'RUN_STATE_FAILED',
      stateReason: 'exit code 7',
      allowed: [{ pattern: 'release/env', actions: ['promote'] }],
    });
  });

  it('finishes a run it made, and leaves one it was given', async () => {
    const { stdout } = await writ(...release('own'), '--', 'sh', '-c', 'echo $WRIT_RUN_ID');
    expect((await json<{ run: { state: string } }>('run', 'get', stdout.trim())).run.state).toBe('RUN_STATE_FINISHED');
    const run = await newRun('release/{env}=promote');
    expect((await writ(...release('given'), '--run', run, '--', 'true')).code).toBe(0);
    expect((await json<{ run: { state: string } }>('run', 'get', run)).run.state).toBe('RUN_STATE_ACTIVE');
  });

  it('takes a task of the map', async () => {
    const { code, stdout } = await writ(
      'exec',
      '--task',
      'deploy',
      '--param',
      'env=task',
      '--',
      'sh',
      '-c',
      'cat $WRIT_ENTRIES_FILE',
    );
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as LeaseJson['entries']).map(({ resource }) => resource)).toEqual([
      'deployment/task',
      'image-tag/task',
    ]);
  });

  it('keeps the lease far beyond its ttl while the command lives, and is refused meanwhile to others (3)', async () => {
    const through = join(directory, 'through');
    await rm(through, { force: true });
    const holder = start(
      'exec',
      '--resource',
      'job/long',
      '--ttl',
      '4s',
      '--',
      'sh',
      '-c',
      `echo started; sleep 12; until [ -e ${through} ]; do sleep 0.1; done; echo through`,
    );
    await holder.says('started');
    const refused = await writ('exec', '--resource', 'job/long', '--', 'sh', '-c', 'echo ran');
    expect([refused.code, refused.stdout]).toEqual([3, '']);
    for (const part of ['refused (held)', 'another run', 'until', 'what to do']) expect(refused.stderr).toContain(part);
    await writeFile(through, '');
    const end = await holder.ended;
    expect([end.code, besidesHurry(end)]).toEqual([0, '']);
  });

  it('waits, and gives its place back when it is interrupted', async () => {
    const holder = start(...release('queue'), '--', 'sh', '-c', 'echo started; sleep 60');
    await holder.says('started');
    const waiter = start(...release('queue'), '--wait', '60s', '--', 'sh', '-c', 'echo ran');
    await json('status');
    await untilWaiting('release/queue', 1);
    waiter.child.kill('SIGTERM');
    expect((await waiter.ended).code).toBe(143);
    await untilWaiting('release/queue', 0);
    const next = start(...release('queue'), '--wait', '60s', '--', 'sh', '-c', 'echo ran');
    await untilWaiting('release/queue', 1);
    holder.child.kill('SIGINT');
    expect((await holder.ended).code).toBe(130);
    expect(await next.ended).toMatchObject({ code: 0, stdout: 'ran\n' });
  });

  it('passes signals on to the command and to what it started', async () => {
    const script = `trap 'echo child; wait; exit 9' TERM; sh -c "trap 'echo grandchild; exit' TERM; echo started; while :; do sleep 0.05; done" & wait`;
    const running = start(...release('signals'), '--', 'sh', '-c', script);
    await running.says('started');
    running.child.kill('SIGTERM');
    const { code, stdout } = await running.ended;
    expect(code).toBe(9);
    expect(stdout.split('\n')).toEqual(expect.arrayContaining(['child', 'grandchild']));
  });

  it('ends the command, with all that it started, when the lease is lost (75)', async () => {
    const marker = `writ-e2e-${process.pid}`;
    const script = `trap '' TERM; (trap '' TERM; echo started; exec -a ${marker} sleep 60) & while :; do sleep 0.05; done`;
    const running = start(...release('lost'), '--grace', '300ms', '--', 'bash', '-c', script);
    await running.says('started');
    const { leases } = await json<{ leases: LeaseJson[] }>('lease', 'list', '--resource', 'release/lost');
    expect((await writ('lease', 'revoke', leases[0]?.leaseId ?? '', '--reason', 'e2e')).code).toBe(0);
    const { code, stderr } = await running.ended;
    expect(code).toBe(75);
    for (const part of ['revoked', 'SIGTERM', 'proves nothing about remote effects']) expect(stderr).toContain(part);
    expect(await commandLines()).not.toContain(marker);
  });

  it('renews only while the output of the progress command changes (F4)', async () => {
    const path = join(directory, 'progress');
    await writeFile(path, '0');
    const watched = [
      'exec',
      '--resource',
      'job/watched',
      '--ttl',
      '4s',
      '--grace',
      '100ms',
      '--progress-interval',
      '200ms',
      '--progress-command',
      `cat ${path}`,
    ];
    const moving = start(...watched, '--', 'sh', '-c', `for i in $(seq 1 20); do echo $i > ${path}; sleep 0.5; done`);
    const moved = await moving.ended;
    expect([moved.code, besidesHurry(moved)]).toEqual([0, '']);
    const stuck = await writ(...watched, '--', 'sleep', '60');
    expect(stuck.code).toBe(75);
    expect(stuck.stderr).toContain('not_renewed');
  });

  it('says what cannot be run as shells do', async () => {
    expect((await writ(...release('none'), '--', '/no/such/command')).code).toBe(127);
    expect((await writ(...release('none'), '--', directory)).code).toBe(126);
    expect((await writ(...release('none'), '--', 'sh', '-c', 'kill -9 $$')).code).toBe(137);
  });

  async function untilWaiting(resource: string, count: number): Promise<void> {
    for (;;) {
      const { leases = [] } = await json<{ leases?: unknown[] }>(
        'lease',
        'list',
        '--resource',
        resource,
        '--state',
        'waiting',
      );
      if (leases.length === count) return;
    }
  }
});

describe('the log', () => {
  it('is exported, verified offline, and any changed byte is found (F23)', async () => {
    const [exported, changed, key] = ['log.ndjson', 'changed.ndjson', 'key.pem'].map((name) =>
      join(directory, name),
    ) as [string, string, string];
    const kept = join(directory, 'kept.json');
    await writeFile(kept, (await writ('audit', 'checkpoint', '--json')).stdout);
    expect((await writ('audit', 'export', '-o', exported)).code).toBe(0);
    const { checkpoint } = await json<{ checkpoint: { publicKey: string } }>('audit', 'checkpoint');
    await writeFile(key, checkpoint.publicKey);
    expect(await writ('audit', 'verify', exported, '--public-key', key)).toMatchObject({ code: 0 });
    const bytes = await readFile(exported);
    for (let time = 1; time <= 5; time += 1) {
      const at = Math.floor((bytes.length * time) / 6);
      const tampered = Buffer.from(bytes);
      tampered[at] = (tampered[at] ?? 0) ^ 1;
      await writeFile(changed, tampered);
      expect((await writ('audit', 'verify', changed, '--public-key', key)).code).toBe(7);
    }
    await writeFile(changed, bytes.subarray(0, bytes.lastIndexOf('\n', bytes.length - 2) + 1));
    expect((await writ('audit', 'verify', changed)).stdout).toContain('cut off');
    const nowhere = await writ('audit', 'export', '-o', join(directory, 'no', 'such', 'log'));
    expect([nowhere.code, nowhere.stderr.includes('cannot be written')]).toEqual([2, true]);
    expect((await writ('audit', 'verify', exported, '--checkpoint', kept)).code).toBe(0);
    await newRun('release/{env}=promote');
    await writeFile(kept, (await writ('audit', 'checkpoint', '--json')).stdout);
    const older = await writ('audit', 'verify', exported, '--checkpoint', kept);
    expect([older.code, older.stdout.includes('cut off')]).toEqual([7, true]);
    await writeFile(changed, bytes.subarray(0, bytes.length - 1));
    const unfinished = await writ('audit', 'verify', changed);
    expect([unfinished.code, unfinished.stdout.includes('no line feed')]).toEqual([7, true]);
    expect((await readdir(directory)).filter((name) => name.endsWith('.part'))).toEqual([]);
  });
});

describe('serve', () => {
  it('runs a coordinator until it is stopped', async () => {
    const dataDir = join(directory, 'served');
    const serving = startWith({ WRIT_DATA_DIR: dataDir }, 'serve');
    await serving.says('"event":"ready"');
    serving.child.kill('SIGTERM');
    const { code, stdout } = await serving.ended;
    expect(code).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({ event: 'ready', data_dir: dataDir });
  });
});

describe('without a coordinator', () => {
  it('ends with 5, and a check denies', async () => {
    const nowhere = ['--endpoint', '127.0.0.1:1', '--timeout', '1s'];
    expect((await writ('status', ...nowhere)).code).toBe(5);
    const check = await writ(
      'check',
      ...nowhere,
      '--lease',
      '0'.repeat(32),
      '--resource',
      'a',
      '--action',
      'b',
      '--token',
      '1',
    );
    expect([check.code, check.stdout.startsWith('denied (coordinator_unreachable)')]).toEqual([5, true]);
  });
});

/** Command lines of all processes. */
async function commandLines(): Promise<string> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  return (await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))).join('\n');
}
