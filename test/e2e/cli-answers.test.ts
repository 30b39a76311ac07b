import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

// What commands answer, against a real coordinator; the commands run in this process.

const KINDS = `version: 1
kinds:
  - { pattern: "release/{env}", actions: { promote: { concurrency: lease, change_class: shared_pointer, resolver: release-owner } } }
  - { pattern: "route/{env}", actions: { move: { concurrency: lease, change_class: shared_pointer } } }
  - { pattern: "brief/{id}", ttl: 30s, max_ttl: 60s, actions: { take: { concurrency: lease, change_class: shared_pointer } } }
  - { pattern: "board/{id}", mode: observe, actions: { edit: { concurrency: lease, change_class: shared_document } } }
resolvers: { release-owner: { principals: ["group:release"] } }
tasks: { promote: { params: [env], entries: [ { resource: "release/{env}", access: write, actions: [promote] } ] } }
`;
const TIED = `${KINDS}conflicts: [ { between: ["release/{env}", "route/{env}"], because: "the route serves the release" } ]\n`;

let coordinator: CoordinatorProcess;
let directory: string;
const file = (name: string) => join(directory, name);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-cli-answers-'));
  coordinator = await startCoordinatorProcess();
  await writeFile(file('map.yaml'), KINDS);
  await writeFile(file('tied.yaml'), TIED);
  expect((await writ('map', 'apply', file('map.yaml'))).code).toBe(0);
});
afterAll(async () => {
  await coordinator?.stop();
  await rm(directory, { recursive: true, force: true });
});

/** What an attempt has left behind would be in the way of the next. */
afterEach(async () => {
  const operator = coordinator.client('operator');
  await operator.run.stopRuns({ all: true, reason: 'a test', idempotencyKey: randomUUID() });
  operator.close();
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function start(...args: string[]): { readonly ended: Promise<Ended>; stderr(): string } {
  let [stdout, stderr] = ['', ''];
  const env = { WRIT_ENDPOINT: coordinator.grpc, WRIT_DATA_DIR: coordinator.dataDir };
  const surroundings = {
    stdout: { write: (text: string) => (stdout += text) },
    stderr: { write: (text: string) => (stderr += text) },
  };
  const ended = runCli(args, env, surroundings).then((code) => ({ code, stdout, stderr }));
  return { ended, stderr: () => stderr };
}

const writ = (...args: string[]): Promise<Ended> => start(...args).ended;

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await writ(...args, '--json');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
  return JSON.parse(stdout) as T;
}

async function newRun(purpose: string): Promise<string> {
  return (await json<{ run: { runId: string } }>('run', 'create', '--purpose', purpose, '--allow', '{any...}=*')).run
    .runId;
}

const acquire = (run: string, resource: string, ...more: string[]) => [
  ...['lease', 'acquire', '--run', run, '--resource', resource, '--ttl', '5m'],
  ...more,
];

async function hold(run: string, resource: string): Promise<string> {
  return (await json<{ lease: { leaseId: string } }>(...acquire(run, resource))).lease.leaseId;
}

async function untilWaiting(resource: string, count: number): Promise<void> {
  const list = ['lease', 'list', '--resource', resource, '--state', 'waiting'];
  for (;;) if (((await json<{ leases?: unknown[] }>(...list)).leases ?? []).length === count) return;
}

describe('why', () => {
  it('follows a request that waited to its grant and the end of its lease', async () => {
    const [holder, waiter] = [await newRun('holds'), await newRun('waits')];
    const held = await hold(holder, 'release/followed');
    const request = `followed-${randomUUID()}`;
    const waiting = start(...acquire(waiter, 'release/followed', '--wait', '60s', '--request-id', request, '--json'));
    await untilWaiting('release/followed', 1);
    expect((await writ('why', request)).stdout).toContain('So far the request waits');
    await writ('lease', 'release', held, '--run', holder);
    const { lease } = JSON.parse((await waiting.ended).stdout) as { lease: { leaseId: string } };
    expect((await writ('why', request)).stdout).toContain('was granted, and its lease has not ended');
    await writ('lease', 'revoke', lease.leaseId, '--reason', 'called off');
    const { stdout } = await writ('why', request);
    for (const part of ['lease queued', 'lease granted', 'lease ended']) expect(stdout).toContain(part);
    expect(stdout).toContain('The request waited, was granted, and its lease has ended: revoked, called off.');
    const { events } = await json<{ events: { kind: string }[] }>('why', request);
    expect(events.map(({ kind }) => kind)).toEqual(['lease_queued', 'lease_granted', 'lease_ended']);
  });

  it('finds by a lease, or the beginning of its id, also the writes under it that were refused', async () => {
    const run = await newRun('is denied');
    const lease = await hold(run, 'release/denied');
    const check = ['check', '--lease', lease, '--resource', 'release/elsewhere', '--action', 'promote', '--token', '1'];
    expect((await writ(...check)).code).toBe(4);
    // Denials of untracked actions are appended after their answer.
    await expect.poll(async () => (await writ('why', lease)).stdout).toContain('checks denied');
    const { stdout } = await writ('why', lease.slice(0, 8));
    for (const part of ['lease granted', 'checks denied', 'not_covered', 'release/elsewhere'])
      expect(stdout).toContain(part);
    expect((await writ('why', run.slice(0, 8))).stdout).toContain('run created');
    expect((await writ('lease', 'get', lease.slice(0, 8))).stdout).toContain(lease);
    expect((await writ('run', 'get', run.slice(0, 8))).stdout).toContain(run);
    // What ends something wants to be told exactly.
    expect((await writ('lease', 'revoke', lease.slice(0, 8), '--reason', 'a test')).code).toBe(6);
  });

  it('says that a request waited in vain', async () => {
    const [holder, waiter] = [await newRun('holds'), await newRun('waits')];
    await hold(holder, 'release/in-vain');
    const request = `in-vain-${randomUUID()}`;
    const refused = await writ(...acquire(waiter, 'release/in-vain', '--wait', '1s', '--request-id', request));
    expect([refused.code, refused.stdout.includes('wait_timeout')]).toEqual([3, true]);
    expect((await writ('why', request)).stdout).toContain('waited and was not granted: timed_out');
  });
});

describe('lease acquire', () => {
  it('says that a ttl was cut to what the kind allows; so do preview and renew', async () => {
    const run = await newRun('asks for too long');
    const asked = ['--run', run, '--resource', 'brief/a', '--ttl', '10m'];
    const cut = '10 min; its kinds, or the ceiling of its run, allow no more';
    expect((await writ('lease', 'preview', ...asked)).stdout).toContain(cut);
    const { stdout } = await writ('lease', 'acquire', ...asked);
    expect(stdout).toContain('1 min from a grant or renewal');
    expect(stdout).toContain(cut);
    const [lease = ''] = /[0-9a-f]{32}/.exec(stdout) ?? [];
    expect((await json<{ lease: object }>('lease', 'get', lease)).lease).toMatchObject({
      ttl: '60s',
      requestedTtl: '600s',
    });
    expect((await writ('lease', 'renew', lease, '--run', run, '--ttl', '10m')).stderr).toContain(cut);
    expect((await writ('lease', 'renew', lease, '--run', run, '--ttl', '50s')).stderr).toBe('');
  });

  it('says at once that it waits, and gives the place back when it is interrupted', async () => {
    const [holder, waiter] = [await newRun('holds'), await newRun('waits')];
    await hold(holder, 'release/interrupted');
    const waiting = start(...acquire(waiter, 'release/interrupted', '--wait', '60s'));
    await untilWaiting('release/interrupted', 1);
    expect(waiting.stderr()).toContain('waiting up to 1 min');
    process.emit('SIGINT', 'SIGINT');
    const { code, stderr } = await waiting.ended;
    expect([code, stderr.includes('Interrupted: ')]).toEqual([130, true]);
    await untilWaiting('release/interrupted', 0);
  });

  it('says what to do in the words of the command line', async () => {
    const [holder, other] = [await newRun('holds'), await newRun('asks')];
    await hold(holder, 'release/words');
    const { stdout } = await writ(...acquire(other, 'release/words'));
    expect(stdout).toContain(
      'wait for it (--wait 5m), or ask again later. If the holder is stuck, release-owner decides.',
    );
    const partly = await writ(...acquire(other, 'release/words', '--resource', 'route/words'));
    expect(partly.stdout).toContain('or ask for the part that could be granted now');
  });
});

describe('map explain', () => {
  it.each([
    ['a resource that no kind describes', ['nothing/x', 'release/x']],
    ['a task that is not there', ['--a-task', 'none', '--b', 'release/x']],
    ['a parameter that the task does not have', ['--a-task', 'promote', '--a-param', 'tenant=x', '--b', 'release/x']],
  ])('says that it cannot be told of %s (3)', async (_, sides) => {
    const { code, stdout } = await writ('map', 'explain', ...sides);
    expect([code, stdout.startsWith('It cannot be told: a: ')]).toEqual([3, true]);
    expect(stdout).not.toContain('do not conflict');
    const machine = await writ('map', 'explain', ...sides, '--json');
    expect([machine.code, JSON.parse(machine.stdout)]).toMatchObject([3, { answered: false }]);
  });

  it('answers what it can (0)', async () => {
    expect(await writ('map', 'explain', 'route/x', 'release/x')).toMatchObject({ code: 0 });
    expect(await json('map', 'explain', 'release/x', 'release/x')).toMatchObject({ conflict: true, answered: true });
  });
});

describe('a map that puts live leases in conflict', () => {
  it('names the pairs, where they meet and by which rule, and what would change the answer', async () => {
    expect((await writ('map', 'apply', file('map.yaml'))).code).toBe(0);
    const [one, other] = [await newRun('promotes'), await newRun('moves the route')];
    const leases = [await hold(one, 'release/tied'), await hold(other, 'route/tied')];
    const said = [...leases, one, other, 'release/tied', 'route/tied', 'conflicts[0]'];
    const refused = await writ('map', 'apply', file('tied.yaml'));
    expect(refused.code).toBe(3);
    for (const part of said) expect(refused.stdout).toContain(part);
    for (const part of ['writ map preview', 'refuse|revoke_newer|keep_until_end', 'LIVE_CONFLICT'])
      expect(refused.stderr).toContain(part);
    const machine = await writ('map', 'apply', file('tied.yaml'), '--json');
    const { pairs } = JSON.parse(machine.stdout) as { pairs: { a: object; b: object; meet: object[] }[] };
    expect(pairs).toHaveLength(1);
    expect(pairs[0]?.meet).toMatchObject([{ key: 'conflicts[0]', rules: [] }]);
    for (const args of [
      ['map', 'preview', file('tied.yaml')],
      ['map', 'apply', '--dry-run', file('tied.yaml')],
    ]) {
      const { code, stdout } = await writ(...args);
      expect(code).toBe(3);
      for (const part of [...said, 'would not be taken: it puts 1 pair of live leases in conflict', 'keep_until_end'])
        expect(stdout).toContain(part);
    }
    const kept = await writ('map', 'apply', file('tied.yaml'), '--on-live-conflict', 'keep_until_end');
    expect(kept.code).toBe(0);
  });
});

describe('who', () => {
  it("names a runner's own leases, with the purpose of the run, and nobody else's", async () => {
    const mine = await newRun('my own work');
    const leaseId = await hold(mine, 'route/own');
    const { stdout } = await writ('who', 'route/own', '--as', 'runner');
    for (const part of [leaseId, mine, 'my own work']) expect(stdout).toContain(part);
    expect(stdout).not.toContain('another run');
  });

  it('counts only runs that may still acquire among those that may ask', async () => {
    const [active, blocked] = [await newRun('asks'), await newRun('stands still')];
    const asking = async () => {
      const { may } = await json<{ may: { run: { runId: string } }[] }>('who', 'route/free');
      return may.map(({ run }) => run.runId).filter((runId) => [active, blocked].includes(runId));
    };
    expect((await asking()).sort()).toEqual([active, blocked].sort());
    expect(
      (await writ('run', 'update', blocked, '--state', 'blocked', '--reason', 'no input', '--as', 'runner')).code,
    ).toBe(0);
    expect(await asking()).toEqual([active]);
  });
});

describe('exec', () => {
  it('says what observe mode granted and would have refused', async () => {
    await hold(await newRun('holds'), 'board/observed');
    const { code, stderr } = await writ('exec', '--resource', 'board/observed', '--action', 'edit', '--', 'true');
    expect([code, stderr]).toEqual([0, expect.stringContaining('board/observed is only observed; enforced')]);
    expect(stderr).toContain('held');
  });
});

describe('run create', () => {
  it('says that a contract takes no aliases (2)', async () => {
    const alias = ['run', 'create', '--purpose', 'by alias', '--allow', 'https://board.example/1=edit'];
    const { code, stderr } = await writ(...alias);
    expect([code, stderr.includes('allowed[0].pattern')]).toEqual([2, true]);
    expect(stderr).toContain('a contract takes patterns of paths, no aliases of the conflict map');
  });

  type Made = { run: { runId: string; authorityEndsAt: string } };

  it('of a child ends it no later than its parent, unless told otherwise (R2)', async () => {
    const create = (...more: string[]) => ['run', 'create', '--purpose', 'p', '--allow', '{any...}=*', ...more];
    const parent = (await json<Made>(...create('--for', '20m'))).run;
    const child = (await json<Made>(...create('--parent', parent.runId))).run;
    expect(child.authorityEndsAt).toBe(parent.authorityEndsAt);
    const wider = await writ(...create('--parent', parent.runId, '--for', '1h'));
    expect([wider.code, wider.stderr]).toEqual([77, expect.stringContaining('--for: the parent run allows at most')]);
    const long = (await json<Made>(...create('--for', '2d'))).run;
    const narrow = (await json<Made>(...create('--parent', long.runId))).run;
    expect(Date.parse(narrow.authorityEndsAt)).toBeLessThan(Date.parse(long.authorityEndsAt));
    const orphan = await writ(...create('--parent', '0'.repeat(32)));
    expect([orphan.code, orphan.stderr]).toEqual([6, expect.stringContaining('0'.repeat(32))]);
  });

  it('by a key is the same run only by the same end, and says so', async () => {
    const key = randomUUID();
    const create = (...end: string[]) => ['run', 'create', '--purpose', 'p', '--allow', 'a=b', '--key', key, ...end];
    const until = new Date(Date.now() + 600_000).toISOString();
    const made = (await json<Made>(...create('--until', until))).run;
    expect((await json<Made>(...create('--until', until))).run.runId).toBe(made.runId);
    const another = await writ(...create());
    expect([another.code, another.stderr]).toEqual([3, expect.stringContaining('the same --until')]);
  });
});

describe('a star in a pattern', () => {
  it.each([
    ['a freeze', ['freeze', 'release/*', '--reason', 'an incident']],
    ['a contract', ['run', 'create', '--purpose', 'p', '--allow', 'route/{env}=move', '--allow', 'release/*=promote']],
  ])('of %s is said to be no wildcard, beside the result', async (_, args) => {
    expect(await writ(...args)).toMatchObject({
      code: 0,
      stderr:
        'In "release/*" the * is no wildcard and stands for itself: {name} is any one segment, {name...} all the rest.\n',
    });
    expect(await json(...args)).toBeTruthy();
    const without = args.map((arg) => arg.replace('release/*', 'release/{env...}'));
    expect(await writ(...without)).toMatchObject({ code: 0, stderr: '' });
    for (const pattern of ['release/*', 'release/{env...}']) await writ('thaw', pattern, '--reason', 'it is over');
  });
});

describe('audit', () => {
  it('of a part says how to verify it, and what is missing without that', async () => {
    const exported = await writ('audit', 'export', '--after', '1', '-o', file('part.ndjson'));
    const hint = `writ audit verify --after 1 ${file('part.ndjson')}`;
    expect(exported.stdout).toContain(hint);
    expect(await writ(...hint.split(' ').slice(1))).toMatchObject({ code: 0 });
    const without = await writ('audit', 'verify', file('part.ndjson'));
    expect([without.code, without.stdout.includes('Give --after 1 if you expect that.')]).toEqual([7, true]);
  });

  it('lists the kinds of event when it is asked for none of them (2)', async () => {
    const { code, stderr } = await writ('audit', 'events', '--kind', 'bogus');
    expect([code, stderr.includes('There is no kind bogus; there are ')]).toEqual([2, true]);
    expect(stderr).toContain('lease_granted');
    expect((await writ('audit', 'events', '--kind', 'lease_granted')).code).toBe(0);
  });
});
