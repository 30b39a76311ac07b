import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { cli } from '../support/cli.js';
import { check, createRun, granted, putMap, write } from '../support/coordinator.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';

// `writ audit archive` against a coordinator: nothing is cut that is not in an archive, on the disk and whole (A2).

const directory = mkdtempSync(join(tmpdir(), 'writ-archive-'));
const at = (name: string): string => join(directory, name);
let serial = 0;
/** One that is not there, also at a second attempt. */
const newFile = (name: string): string => at(`${name}-${++serial}`);
/** The beginning of the log, as it was cut piece by piece; the first one is written before anything is cut. */
const archives: string[] = [];
const CUT = ['--cut', '--reason', 'a test', '--even-young'];
const MAP = `
version: 1
kinds:
  - { pattern: "doc/{id}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
`;
let served: ServedReplica;

beforeAll(async () => {
  served = await startServedReplica();
});
afterAll(async () => {
  await served?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const audit = (...args: string[]) => cli(['audit', ...args], { client: served.client('admin') });

/** The head, with more events after it. */
async function headOf(): Promise<string> {
  const { checkpoint } = await served.client('auditor').audit.getCheckpoint({});
  for (let i = 0; i < 3; i += 1) await createRun(served.api);
  return String(checkpoint?.revision);
}

async function first(): Promise<bigint> {
  return (await served.client('auditor').audit.listEvents({ page: { pageSize: 1 } })).firstRevision;
}

describe('writ audit archive', () => {
  it('writes a whole archive, over none that is there', async () => {
    const upto = await headOf();
    const one = newFile('archive');
    expect(await audit('archive', '--file', one)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--upto'),
    });
    expect(await audit('archive', '--file', one, '--upto', upto)).toMatchObject({ code: 0 });
    archives[0] = one;
    const written = await readFile(one);
    const before = await readdir(directory);
    expect((await audit('archive', '--file', one, '--upto', upto)).stderr).toContain('is there already');
    expect(await readFile(one)).toEqual(written);
    expect(await audit('archive', '--file', at('x'), '--before', '2020-01-01T00:00:00Z')).toMatchObject({ code: 2 });
    expect(await audit('archive', '--file', at('x'), '--upto', '999999')).toMatchObject({ code: 2 });
    expect(await readdir(directory)).toEqual(before);
    expect(before).toContain(basename(one));
    expect(await first()).toBe(1n);
  });

  it('cuts by nothing but a whole archive, said why, by an admin, and not what is young', async () => {
    const [one = ''] = archives;
    const written = await readFile(one);
    await writeFile(at('broken'), written.subarray(0, written.lastIndexOf('\n', written.length - 2) + 1));
    const { code, stderr } = await audit('archive', '--file', at('broken'), ...CUT);
    expect([code, stderr]).toEqual([7, expect.stringContaining('cut off')]);
    expect(await audit('archive', '--file', one, '--cut')).toMatchObject({ code: 2 });
    const young = await audit('archive', '--file', one, '--cut', '--reason', 'x');
    expect([young.code, young.stderr]).toEqual([3, expect.stringContaining('24 h')]);
    const auditor = await cli(['audit', 'archive', '--file', one, ...CUT], { client: served.client('auditor') });
    expect(auditor.code).toBe(77);
    expect(await first()).toBe(1n);
  });

  it('goes on with the archive that is there, when the call before was killed between archive and cut, or after it', async () => {
    // A second attempt goes on from where the first one had cut.
    if ((await first()) > 1n) {
      archives.push(newFile('archive'));
      await audit('archive', '--file', archives.at(-1) ?? '', '--upto', await headOf());
    }
    const one = archives.at(-1) ?? '';
    expect(await audit('archive', '--file', one, ...CUT)).toMatchObject({ code: 0 });
    const begins = await first();
    expect(begins).toBeGreaterThan(1n);
    const again = await audit('archive', '--file', one, ...CUT, '--json');
    expect(again.json()).toMatchObject({ cut: { firstRevision: String(begins), removed: 0 } });
    const next = newFile('archive');
    expect(await audit('archive', '--file', next, '--upto', await headOf(), ...CUT)).toMatchObject({ code: 0 });
    archives.push(next);
    const stale = await audit('archive', '--file', one, ...CUT);
    expect([stale.code, stale.stderr]).toEqual([2, expect.stringMatching(/begins at revision \d+, and the log at/)]);
  });

  it('leaves a log that is verified with its archives as one, and says alone where it begins', async () => {
    const rest = newFile('rest');
    await audit('export', '-o', rest);
    const whole = await audit('verify', ...archives, rest);
    expect([whole.code, whole.stdout]).toEqual([0, expect.stringContaining('revisions 1 to')]);
    expect(await audit('verify', ...archives.slice(0, -1), rest)).toMatchObject({ code: 7 });
    const alone = await audit('verify', rest);
    expect([alone.code, alone.stdout]).toEqual([0, expect.stringContaining('The log was cut')]);
    const begins = await first();
    const events = await audit('events', '--limit', '1');
    expect(events.stderr).toContain(`begins at revision ${begins}`);
    const late = await audit('export', '-o', newFile('late'), '--after', '2');
    expect([late.code, late.stderr]).toEqual([3, expect.stringContaining('begins at revision')]);
  });
});

describe('writ audit reconcile', () => {
  it('tells an honest target from one that wrote without a lease, after it, or says something else than it reported', async () => {
    const { api } = served;
    await putMap(api, MAP);
    const runId = await createRun(api);
    const resource = `doc/${runId}`;
    const lease = await granted(api, runId, [write(resource, 'replace')]);
    const checked = await check(api, lease);
    expect(checked.allowed).toBe(true);
    const now = new Date();
    const recordedAt = now.toISOString();
    // A write is judged where the log goes on for longer than the tolerance after it.
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(now.getTime() + 2));
    await createRun(api);
    const ours = { identity: runId, runId, requestId: 'req-1', resource, action: 'replace', method: 'PUT' };
    const honest = { ...ours, recordedAt, result: 'written', status: 200, cursor: '1.1' };
    const log = newFile('log');
    expect(await audit('export', '-o', log)).toMatchObject({ code: 0 });
    const reconcile = async (...records: object[]) => {
      await writeFile(at('records'), records.map((one) => `${JSON.stringify(one)}\n`).join(''));
      const against = ['--records', at('records'), '--target', 'target', '--tolerance', '1ms'];
      return audit('reconcile', ...archives, log, ...against, '--json');
    };
    expect(await reconcile(honest)).toMatchObject({ code: 0 });
    const forged = await reconcile(honest, { ...honest, runId: 'f'.repeat(32) }, { ...honest, action: 'remove' });
    expect([forged.code, forged.json()]).toEqual([
      7,
      expect.objectContaining({
        written: 3,
        findings: [0, 1].map(() => expect.objectContaining({ kind: 'no_lease' })),
      }),
    ]);
    const bad = await reconcile(honest, { ...honest, recordedAt: 'yesterday' });
    expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('line 2 is no record of a write: recordedAt')]);
  });
});
