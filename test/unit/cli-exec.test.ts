import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { serverFindings } from '../../src/cli/doctor/database.js';
import { nodeVersion } from '../../src/cli/doctor/machine.js';
import { contractFor } from '../../src/cli/exec/contract.js';
import { writeEntriesFile } from '../../src/cli/exec/entries-file.js';
import { ProcessGroup } from '../../src/cli/exec/process-group.js';
import { ProgressWatch } from '../../src/cli/exec/progress-watch.js';
import type { WritClient } from '../../src/clients/common/connect.js';
import { ExplainConflictResponse, ResolveResourceResponse } from '../../src/gen/writ/v1/conflict_map_service.js';
import { Access, LeaseEntry, Scope } from '../../src/gen/writ/v1/types.js';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-exec-test-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const ENV = { PATH: process.env.PATH ?? '' };

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}
const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

describe('a command in its own group', () => {
  it.each([
    ['exit 0', 0],
    ['exit 7', 7],
    ['kill -9 $$', 137],
    ['kill -TERM $$', 143],
  ])('ends with the code of `%s`: %d', async (script, code) => {
    const group = await ProcessGroup.start(['sh', '-c', script], ENV);
    expect(await group.exited).toBe(code);
    expect(await group.isRunning()).toBe(false);
  });

  it('says what shells would say of what cannot be run', async () => {
    await expect(ProcessGroup.start(['/no/such/command'], ENV)).rejects.toMatchObject({ exitCode: 127 });
    await expect(ProcessGroup.start([directory], ENV)).rejects.toMatchObject({ exitCode: 126 });
  });

  it('is ended with all that it started, by SIGTERM', async () => {
    const ready = join(directory, 'ready-1');
    const group = await ProcessGroup.start(
      ['sh', '-c', `(trap 'exit 0' TERM; touch ${ready}; while :; do sleep 0.05; done) & wait`],
      ENV,
    );
    await until(() => exists(ready));
    await group.end(5_000);
    expect(await group.exited).toBe(143);
    expect(await group.isRunning()).toBe(false);
  });

  it('is ended by SIGKILL when it does not listen', async () => {
    const ready = join(directory, 'ready-2');
    // Both the command and what it started ignore SIGTERM.
    const group = await ProcessGroup.start(
      ['sh', '-c', `trap '' TERM; (touch ${ready}; while :; do sleep 0.05; done) & while :; do sleep 0.05; done`],
      ENV,
    );
    await until(() => exists(ready));
    await group.end(200);
    expect(await group.exited).toBe(137);
    expect(await group.isRunning()).toBe(false);
  });

  it('is known to live on in what it left behind', async () => {
    const group = await ProcessGroup.start(['sh', '-c', 'sleep 60 & exit 0'], ENV);
    expect(await group.exited).toBe(0);
    expect(await group.isRunning()).toBe(true);
    await group.end(5_000);
    expect(await group.isRunning()).toBe(false);
  });
});

describe('the entries file', () => {
  it('is for its owner only, has exact tokens, and goes away', async () => {
    const entries = [
      LeaseEntry.fromPartial({
        resource: 'a',
        fencingToken: 2n ** 53n + 1n,
        access: Access.ACCESS_WRITE,
        scope: Scope.SCOPE_EXACT,
      }),
    ];
    const file = await writeEntriesFile(entries);
    expect((await stat(file.path)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(file.path, 'utf8'))).toMatchObject([
      { resource: 'a', access: 'ACCESS_WRITE', fencingToken: '9007199254740993' },
    ]);
    await file.remove();
    expect(await exists(file.path)).toBe(false);
  });
});

describe('ProgressWatch', () => {
  it('sees the output change, and nothing in it when it does not or the command fails (F4)', async () => {
    const path = join(directory, 'progress');
    await writeFile(path, '1');
    const [markers, failures]: [string[], string[]] = [[], []];
    const watch = new ProgressWatch(
      `cat ${path}`,
      20,
      ENV,
      (marker) => markers.push(marker),
      (message) => failures.push(message),
    );
    watch.start();
    await until(async () => markers.length === 1);
    await until(async () => watch.unchangedForMs > 150);
    expect(markers).toHaveLength(1);
    await writeFile(path, '2');
    await until(async () => markers.length === 2);
    expect(watch.unchangedForMs).toBeLessThan(1_000);
    await rm(path);
    await until(async () => failures.length > 2);
    expect(new Set(markers).size).toBe(2);
    watch.stop();
  });
});

describe('the contract of a run made for one command', () => {
  const client = (answers: object) => ({ conflictMap: answers }) as unknown as WritClient;
  const resolving = client({
    resolveResource: async ({ resource }: { resource: string }) =>
      ResolveResourceResponse.fromPartial({ resource: resource.replace('arn:', 'path/') }),
  });

  it('is exactly what was asked for, aliases as paths', async () => {
    const resources = [
      { resource: 'arn:x', actions: ['promote'] },
      { resource: 'b' },
      { resource: 'c', access: 'stable_read' as const },
      { resource: 'd', access: 'read' as const },
      { resource: 'e', scope: 'subtree' as const, actions: ['repair'] },
    ];
    expect(await contractFor(resolving, { resources })).toEqual([
      { pattern: 'path/x', actions: ['promote'] },
      { pattern: 'b', actions: ['*'] },
      { pattern: 'c', actions: [] },
      { pattern: 'e', actions: ['repair'] },
      { pattern: 'e/{below...}', actions: ['repair'] },
    ]);
  });

  it('is what the conflict map says that the task needs, without what is implied', async () => {
    const explainConflict = vi.fn(async () =>
      ExplainConflictResponse.fromPartial({
        entriesA: [
          { resource: 'a', access: Access.ACCESS_WRITE, scope: Scope.SCOPE_EXACT, actions: ['rotate'] },
          {
            resource: 'b',
            access: Access.ACCESS_WRITE,
            scope: Scope.SCOPE_EXACT,
            actions: ['x'],
            impliedBy: 'implies[0]',
          },
        ],
      }),
    );
    expect(await contractFor(client({ explainConflict }), { task: { name: 't', parameters: { p: '1' } } })).toEqual([
      { pattern: 'a', actions: ['rotate'] },
    ]);
    expect(explainConflict).toHaveBeenCalledWith(
      expect.objectContaining({ a: { task: { name: 't', parameters: { p: '1' } } } }),
    );
  });

  it('cannot be made for a resource set', async () => {
    await expect(contractFor(resolving, { resourceSet: 's' })).rejects.toMatchObject({ exitCode: 2 });
  });
});

describe('doctor', () => {
  const server = {
    version: '17.2',
    major: 17,
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    encoding: 'UTF8',
    in_recovery: false,
  };
  const problems = (change: object) =>
    serverFindings({ ...server, ...change })
      .filter(({ verdict }) => verdict === 'problem')
      .map(({ what }) => what);

  it.each([
    [{}, []],
    [{ synchronous_commit: 'local' }, []],
    [{ version: '14.1', major: 14 }, ['database']],
    [{ version: '19', major: 19 }, ['database']],
    [
      { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' },
      ['fsync', 'synchronous_commit', 'full_page_writes'],
    ],
    [{ in_recovery: true, encoding: 'LATIN1' }, ['primary', 'encoding']],
  ])('finds in %j: %j', (change, expected) => {
    expect(problems(change)).toEqual(expected);
  });

  it('knows which Node is too old', () => {
    expect([nodeVersion('18.19.0').verdict, nodeVersion('20.0.0').verdict, nodeVersion('24.1.0').verdict]).toEqual([
      'problem',
      'ok',
      'ok',
    ]);
  });
});
