import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  ExplainConflictResponse,
  GetConflictMapResponse,
  PreviewConflictMapResponse,
  PutConflictMapResponse,
} from '../../src/gen/writ/v1/conflict_map_service.js';
import { cli } from '../support/cli.js';

const RELEASE = `# the release team's
version: 1
kinds:
  - pattern: "release/{env}" # one pointer each
    actions: { promote: { concurrency: lease, change_class: shared_pointer } }
`;
const TENANTS = `kinds:
  # tokens of tenants
  - { pattern: "service-token/{tenant}", actions: { rotate: { concurrency: lease, change_class: shared_document } } }
tasks: { rotate: { params: [tenant], entries: [ { resource: "service-token/{tenant}", access: write, actions: [rotate] } ] } }
`;
const ASSERTION = (conflict: boolean) =>
  `assertions: [ { conflict: ${conflict}, a: { task: rotate, tenant: acme }, b: { entries: [ { resource: "service-token/acme", access: write } ] } } ]\n`;

let directory: string;
const at = (...names: string[]) => join(directory, ...names);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-map-test-'));
  await mkdir(at('teams', 'deep'), { recursive: true });
  await mkdir(at('empty'));
  await writeFile(at('one.yaml'), RELEASE);
  await writeFile(at('broken.yaml'), 'version: 1\nkinds:\n  - pattern: "a/{b"\n    frob: 1\n');
  await writeFile(at('teams', 'a-release.yaml'), RELEASE);
  await writeFile(at('teams', 'deep', 'tenants.yml'), TENANTS);
  await writeFile(at('teams', 'notes.txt'), 'not a fragment');
  await writeFile(at('passes.yaml'), `version: 1\n${TENANTS}${ASSERTION(true)}`);
  await writeFile(at('fails.yaml'), `version: 1\n${TENANTS}${ASSERTION(false)}`);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('map validate, offline', () => {
  it.each(['one.yaml', 'teams'])('takes %s', async (name) => {
    const { code, stdout, connected } = await cli(['map', 'validate', at(name)]);
    expect([code, connected]).toEqual([0, []]);
    expect(stdout).toContain('valid');
  });

  it('says file, line and column of what is wrong (2)', async () => {
    const { code, stdout } = await cli(['map', 'validate', at('broken.yaml')]);
    expect(code).toBe(2);
    expect(stdout).toContain(`${at('broken.yaml')}:4:5: error (unknown_key)`);
    const machine = await cli(['map', 'validate', at('broken.yaml'), '--json']);
    expect(machine.json()).toMatchObject({ valid: false, problems: [{ line: 4, code: 'unknown_key' }] });
  });

  it('reads standard input', async () => {
    expect((await cli(['map', 'validate', '-'], { stdin: RELEASE })).code).toBe(0);
  });

  it.each(['no-such.yaml', 'empty'])('says that there is nothing in %s (2)', async (name) => {
    expect((await cli(['map', 'validate', at(name)])).code).toBe(2);
  });
});

describe('map test, offline', () => {
  it('runs the assertions (0, 7)', async () => {
    expect(await cli(['map', 'test', at('passes.yaml')])).toMatchObject({ code: 0, stdout: 'passed: 1 assertion\n' });
    const failed = await cli(['map', 'test', at('fails.yaml')]);
    expect(failed.code).toBe(7);
    expect(failed.stdout).toContain('assertion_failed');
    expect((await cli(['map', 'test', at('broken.yaml')])).code).toBe(2);
  });
});

function maps(current: string, version = 4n) {
  const putConflictMap = vi.fn(async (_request: object) =>
    PutConflictMapResponse.fromPartial({ version: version + 1n }),
  );
  const getConflictMap = vi.fn(async ({ version: wanted }: { version?: bigint }) =>
    GetConflictMapResponse.fromPartial({
      document: wanted === 2n ? 'of version 2' : current,
      version: wanted || version,
      author: 'admin',
    }),
  );
  return {
    client: {
      conflictMap: {
        putConflictMap,
        getConflictMap,
        previewConflictMap: async () => PreviewConflictMapResponse.fromPartial({ accepted: true }),
      },
    },
    put: () => putConflictMap.mock.lastCall?.[0] as Record<string, unknown> | undefined,
  };
}

describe('map apply and rollback', () => {
  it('put one file as it is, against the current version', async () => {
    const { client, put } = maps('old');
    expect((await cli(['map', 'apply', at('one.yaml'), '--reason', 'why'], { client })).code).toBe(0);
    expect(put()).toMatchObject({ document: RELEASE, expectedVersion: 4n, reason: 'why' });
  });

  it('put fragments as one document, comments kept', async () => {
    const { client, put } = maps('old');
    expect(
      (
        await cli(['map', 'apply', at('teams'), '--expected-version', '3', '--on-live-conflict', 'keep_until_end'], {
          client,
        })
      ).code,
    ).toBe(0);
    const { document, expectedVersion, onLiveConflict } = put() as {
      document: string;
      expectedVersion: bigint;
      onLiveConflict: number;
    };
    expect([expectedVersion, onLiveConflict]).toEqual([3n, 3]);
    for (const part of [
      "the release team's",
      'one pointer each',
      'tokens of tenants',
      'service-token/{tenant}',
      'release/{env}',
    ])
      expect(document).toContain(part);
    expect((await cli(['map', 'validate', '-'], { stdin: document })).code).toBe(0);
  });

  it('put nothing that is not valid', async () => {
    const { client, put } = maps('old');
    const { code, stderr } = await cli(['map', 'apply', at('broken.yaml')], { client });
    expect([code, put()]).toEqual([2, undefined]);
    expect(stderr).toContain('unknown_key');
  });

  it('put nothing when the same text is in force; a comment is a change', async () => {
    const { client, put } = maps(RELEASE);
    const same = await cli(['map', 'apply', at('one.yaml'), '--expected-version', '4'], { client });
    expect([same.code, same.stdout, put()]).toEqual([
      0,
      'Unchanged: this is version 4, which is in force.\n',
      undefined,
    ]);
    const machine = await cli(['map', 'apply', at('one.yaml'), '--json'], { client });
    expect([machine.json(), put()]).toEqual([{ version: '4', unchanged: true }, undefined]);
    // Against another version than the current one it is the coordinator that refuses.
    await cli(['map', 'apply', at('one.yaml'), '--expected-version', '3'], { client });
    expect(put()).toMatchObject({ expectedVersion: 3n });
    const commented = maps(RELEASE.replace('team', 'teams'));
    await cli(['map', 'apply', at('one.yaml')], { client: commented.client });
    expect(commented.put()).toMatchObject({ expectedVersion: 4n });
  });

  it('put no fragment in the place of the whole map, unless told that kinds are meant to go', async () => {
    const whole = `${RELEASE}\n  - { pattern: "dns/{zone}/{record...}", actions: { point: { concurrency: lease } } }\n`;
    const { client, put } = maps(whole);
    const refused = await cli(['map', 'apply', at('one.yaml')], { client });
    expect([refused.code, put()]).toEqual([3, undefined]);
    expect(refused.stderr).toContain(
      '1 kind of the map that is in force is not in this one, and it would go away: dns/{zone}/{record...}. Nothing was changed.',
    );
    expect(refused.stderr).toContain('--drop-kinds');
    // Its preview says the same, and ends the same.
    const dry = await cli(['map', 'apply', at('one.yaml'), '--dry-run'], { client });
    expect([dry.code, put()]).toEqual([3, undefined]);
    expect(dry.stdout).toContain('It would be taken with --drop-kinds');
    expect((await cli(['map', 'apply', at('one.yaml'), '--dry-run', '--drop-kinds'], { client })).code).toBe(0);
    expect((await cli(['map', 'apply', at('one.yaml'), '--drop-kinds'], { client })).code).toBe(0);
    expect(put()).toMatchObject({ document: RELEASE });
    // More kinds, or other names of the captures, take nothing away.
    const fewer = maps(RELEASE.replaceAll('{env}', '{environment}'));
    expect((await cli(['map', 'apply', at('one.yaml')], { client: fewer.client })).code).toBe(0);
  });

  it('put an older version again', async () => {
    const { client, put } = maps('old');
    expect((await cli(['map', 'rollback', '2'], { client })).code).toBe(0);
    expect(put()).toMatchObject({ document: 'of version 2', expectedVersion: 4n, reason: 'rolled back to version 2' });
  });
});

describe('map get, diff and explain', () => {
  it('print the map byte for byte', async () => {
    const { client } = maps(RELEASE);
    expect((await cli(['map', 'get'], { client })).stdout).toBe(RELEASE);
    expect((await cli(['map', 'get', '--at', '2'], { client })).stdout).toBe('of version 2');
    expect((await cli(['map', 'get'], { client: maps('', 0n).client })).code).toBe(6);
  });

  it('compare', async () => {
    const { client } = maps(RELEASE.replace('shared_pointer', 'derived'));
    const { code, stdout } = await cli(['map', 'diff', at('one.yaml')], { client });
    expect(code).toBe(0);
    expect(stdout.split('\n').filter((line) => /^[-+] /.test(line))).toHaveLength(2);
    expect((await cli(['map', 'diff', at('one.yaml'), '--exit-code'], { client })).code).toBe(1);
    expect((await cli(['map', 'diff', at('one.yaml'), '--exit-code'], { client: maps(RELEASE).client })).code).toBe(0);
  });

  it('ask about two sides', async () => {
    const explainConflict = vi.fn(async (_request: object) => ExplainConflictResponse.fromPartial({ conflict: true }));
    const client = { conflictMap: { explainConflict } };
    const explained = async (...args: string[]) => {
      explainConflict.mockClear();
      const { code } = await cli(['map', 'explain', ...args], { client });
      return { code, request: explainConflict.mock.lastCall?.[0] };
    };
    expect((await explained('x/1', 'y/1', '--action', 'w')).request).toMatchObject({
      a: { entries: [{ resource: 'x/1', actions: ['w'] }] },
      b: { entries: [{ resource: 'y/1', actions: ['w'] }] },
    });
    expect(
      (await explained('--a', 'x', '--subtree', '--b', 'y', '--access', 'read', '--b', 'z')).request,
    ).toMatchObject({
      a: { entries: [{ resource: 'x', scope: 2, access: 3 }] },
      b: {
        entries: [
          { resource: 'y', scope: 1, access: 1 },
          { resource: 'z', access: 3 },
        ],
      },
    });
    expect((await explained('--a-task', 't', '--a-param', 'p=1', '--b', 'y')).request).toMatchObject({
      a: { entries: [], task: { name: 't', parameters: { p: '1' } } },
    });
    expect((await explained('x/1', '--action', 'v', 'y/1', '--action', 'w')).code).toBe(2);
    expect((await explained('x/1')).code).toBe(2);
    expect((await explained('--a', 'x', '--a-task', 't', '--b', 'y')).code).toBe(2);
  });
});
