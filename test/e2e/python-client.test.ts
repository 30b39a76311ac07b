import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startCoordinatorProcess } from '../support/coordinator-process.js';

/** Debian's interpreter, for which Debian's python3-grpcio is: another python3 may come first on the path. */
const PYTHON = '/usr/bin/python3';
const SCRIPT = fileURLToPath(new URL('python_client.py', import.meta.url));
const INFRASTRUCTURE = readFileSync(new URL('../../examples/maps/infrastructure.yaml', import.meta.url), 'utf8');
const API_GUIDE = new URL('../../docs/api.md', import.meta.url);

const missing = whatIsMissing();
if (missing !== '') console.warn(`skipped: a stock Python client: ${missing}`);

function whatIsMissing(): string {
  try {
    execFileSync(PYTHON, ['-c', 'import grpc, google.protobuf'], { stdio: 'pipe' });
    return '';
  } catch (error) {
    const said = (error as { stderr?: Buffer }).stderr?.toString().trim().split('\n').at(-1);
    return `${said || (error as Error).message}; on Debian: apt-get install python3-grpcio python3-protobuf`;
  }
}

const SERVICES = ['Audit', 'ConflictMap', 'Credential', 'Fence', 'Lease', 'Namespace', 'Run'].map(
  (name) => `writ.v1.${name}Service`,
);

describe(missing === '' ? 'a stock Python client' : `a stock Python client (skipped: ${missing})`, () => {
  it.skipIf(missing !== '').each([
    ['its own map', null],
    ['the map of the first steps', INFRASTRUCTURE],
    ['a map that tracks releases', INFRASTRUCTURE.replace('promote: {', 'promote: { tracked: true,')],
  ])('finds the contract by reflection, acquires, checks, reports and releases, under %s', async (_, map) => {
    const coordinator = await startCoordinatorProcess();
    onTestFinished(async () => {
      await coordinator.stop();
      await rm(coordinator.dataDir, { recursive: true, force: true });
    });
    if (map !== null) {
      const put = { document: map, expectedVersion: 0n, reason: 'a test' };
      await coordinator.client('admin').conflictMap.putConflictMap(put);
    }
    const tokens = join(coordinator.dataDir, 'dev-tokens.json');
    const { stdout } = await promisify(execFile)(PYTHON, [SCRIPT, coordinator.grpc, tokens], { timeout: 30_000 });
    expect(JSON.parse(stdout)).toEqual({
      services: SERVICES,
      services_v1alpha: SERVICES,
      granted: true,
      same_key_same_lease: true,
      other_run: 'REFUSAL_KIND_HELD',
      check: 'FENCE_REASON_OK',
      check_other_action: 'FENCE_REASON_ACTION_NOT_ALLOWED',
      release: 'RELEASE_OUTCOME_RELEASED',
      check_after_release: 'FENCE_REASON_RELEASED',
      unknown_run: 'NOT_FOUND RUN_NOT_FOUND',
      wrong_role: 'PERMISSION_DENIED ROLE_REQUIRED',
      no_token: 'UNAUTHENTICATED UNAUTHENTICATED',
    });
  });
});

it('the API guide shows this client, line by line', () => {
  expect(readFileSync(API_GUIDE, 'utf8')).toContain(`\`\`\`python\n${readFileSync(SCRIPT, 'utf8')}\`\`\`\n`);
});
