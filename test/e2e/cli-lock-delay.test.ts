import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

// What people see of a resource that an early end keeps closed to others: its targets verify credentials by themselves.

const MAP = `
version: 1
kinds:
  - { pattern: "cdn/{name}", validation: local, ttl: 60s, max_ttl: 5m, actions: { purge: { access: write, concurrency: lease, change_class: shared_pointer } } }
`;

let coordinator: CoordinatorProcess;
let directory: string;
let runId: string;
let leaseId: string;
let effectiveAt: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-lock-delay-'));
  coordinator = await startCoordinatorProcess();
  const map = join(directory, 'map.yaml');
  await writeFile(map, MAP);
  await json('map', 'apply', map);
  const { run } = await json<{ run: { runId: string } }>(
    'run',
    'create',
    '--purpose',
    'purges',
    '--allow',
    'cdn/{n}=*',
  );
  runId = run.runId;
  const { lease } = await json<{ lease: { leaseId: string } }>(
    ...['lease', 'acquire', '--run', runId, '--resource', 'cdn/eu', '--ttl', '5m'],
  );
  leaseId = lease.leaseId;
  ({ effectiveAt } = await json<{ effectiveAt: string }>('lease', 'release', leaseId, '--run', runId));
});

afterAll(async () => {
  await coordinator?.stop();
  await rm(directory, { recursive: true, force: true });
});

async function writ(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  let [stdout, stderr] = ['', ''];
  const env = { WRIT_ENDPOINT: coordinator.grpc, WRIT_DATA_DIR: coordinator.dataDir };
  const code = await runCli(args, env, {
    stdout: { write: (text: string) => (stdout += text) },
    stderr: { write: (text: string) => (stderr += text) },
  });
  return { code, stdout, stderr };
}

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await writ(...args, '--json');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
  return JSON.parse(stdout) as T;
}

it('who says that it is closed, until when, and by which lease', async () => {
  const { code, stdout } = await writ('who', 'cdn/eu');
  expect(code).toBe(0);
  for (const part of [
    'Nobody holds it',
    'UNDER LOCK DELAY',
    'cdn/eu',
    leaseId,
    runId,
    'verify credentials by themselves',
  ])
    expect(stdout).toContain(part);
  const { blockers } = await json<{ blockers: { leaseId: string; lockDelayUntil: string }[] }>('who', 'cdn/eu');
  expect(blockers).toMatchObject([{ leaseId, lockDelayUntil: effectiveAt }]);
});

it('lease list shows it when asked, and not among the live ones', async () => {
  const listed = async (...more: string[]) =>
    (
      (await json<{ leases?: { leaseId: string }[] }>('lease', 'list', '--resource', 'cdn/eu', ...more)).leases ?? []
    ).map((lease) => lease.leaseId);
  expect(await listed()).toEqual([]);
  expect(await listed('--lock-delayed')).toEqual([leaseId]);
  const { stdout } = await writ('lease', 'list', '--resource', 'cdn/eu');
  expect(stdout).toContain('There is no live lease and no waiting request at, above or below cdn/eu.');
  expect((await writ('lease', 'get', leaseId)).stdout).toContain('lock delay until');
});

it('whoever asks for it is refused, with when it opens', async () => {
  const { run } = await json<{ run: { runId: string } }>('run', 'create', '--purpose', 'next', '--allow', 'cdn/{n}=*');
  const { code, stdout } = await writ('lease', 'acquire', '--run', run.runId, '--resource', 'cdn/eu');
  expect(code).toBe(3);
  expect(stdout).toContain('(lock delay)');
});
