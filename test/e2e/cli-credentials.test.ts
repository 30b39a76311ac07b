import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, type CliEnded, startCli } from '../support/cli-process.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { SIMPLE_MAP } from '../support/workload.js';

// `writ exec --audience` and `writ check --credential-file`, as users run them.

let coordinator: CoordinatorProcess;

beforeAll(async () => {
  coordinator = await startCoordinatorProcess();
  await coordinator
    .client('admin')
    .conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
});
afterAll(() => coordinator?.stop());

/** A secret that a machine may have in its environment, and no command is to see. */
const COORDINATORS_OWN = Buffer.alloc(32, 5).toString('base64url');

/** Runs a command line; `writ` in it is this build. */
function writ(args: readonly string[], stdin = ''): Promise<CliEnded> {
  const env = {
    WRIT_ENDPOINT: coordinator.grpc,
    WRIT_DATA_DIR: coordinator.dataDir,
    WRIT: `${process.execPath} ${CLI}`,
    WRIT_KEY_ENCRYPTION_KEY: COORDINATORS_OWN,
    WRIT_REDIS_URL: `redis://:${COORDINATORS_OWN}@127.0.0.1:1`,
  };
  return startCli(env, args, stdin).ended;
}

const under = (resource: string, ttl: string, script: string, ...more: string[]) =>
  writ(['exec', '--resource', resource, '--action', 'set', '--ttl', ttl, ...more, '--', 'sh', '-c', script]);

it('the log says in words which credential was issued and revoked, and which keys were changed', async () => {
  const script = 'cut -d. -f2 "$WRIT_CREDENTIAL_FILE"; echo "$WRIT_RUN_ID"';
  const { stdout } = await under('item/told', '60s', script, '--audience', 'target');
  const [claims = '', runId = ''] = stdout.trim().split('\n');
  const { jti } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti: string };
  expect(await writ(['credential', 'revoke', '--jti', jti, '--reason', 'it leaked'])).toMatchObject({ code: 0 });
  const why = (await writ(['why', runId])).stdout;
  expect(why).toMatch(
    new RegExp(`^credentials issued .*\\n(  .*\\n)*  credentials +audience target, jti ${jti}$`, 'm'),
  );
  const revoked = (await writ(['audit', 'events', '--kind', 'credentials_revoked'])).stdout;
  expect(revoked).toMatch(new RegExp(`^  reason +it leaked\\n  subject +jti:${jti}$`, 'm'));
  const keys = (await writ(['audit', 'events', '--kind', 'signing_keys_changed'])).stdout;
  expect(keys).toMatch(/^ {2}changes +key id [\w-]{43}, state current; key id [\w-]{43}, state next$/m);
});

describe('writ credential revoke', () => {
  const revoke = (...args: string[]) => writ(['credential', 'revoke', ...args]);
  const because = ['--reason', 'it leaked'];

  it('refuses what is out, of a lease or of a run, while the lease lives', async () => {
    for (const of of ['--lease "$WRIT_LEASE_ID"', '--run "$WRIT_RUN_ID"']) {
      const script = `
        old=$(cat "$WRIT_CREDENTIAL_FILE")
        look() { $WRIT check --credential-file "$1" --resource item/leaked --action set; echo "code $?"; }
        look "$WRIT_CREDENTIAL_FILE"
        $WRIT credential revoke ${of} --reason 'it leaked' --json
        echo "$old" > "$WRIT_DATA_DIR/leaked"
        look "$WRIT_DATA_DIR/leaked"
        $WRIT lease get "$WRIT_LEASE_ID" --json | grep -o LEASE_STATE_ACTIVE`;
      const { code, stdout, stderr } = await under('item/leaked', '60s', script, '--audience', 'target');
      expect(code, stderr).toBe(0);
      expect(stdout).toMatch(
        /allowed \(ok\)[\s\S]*code 0\n[\s\S]*"effectiveAt"[\s\S]*denied \(credential_revoked\)[\s\S]*code 4\nLEASE_STATE_ACTIVE/,
      );
    }
  });

  it('says what is wrong in the words of its command line, and ends as it is documented', async () => {
    expect((await revoke('--jti', 'x')).code).toBe(2);
    const none = await revoke(...because);
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('--jti, --lease or --run')]);
    expect((await revoke('--jti', 'x', '--run', 'y', ...because)).code).toBe(2);
    const wrong = await revoke('--run', 'x', ...because);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/^ {2}--run: must be 32/m)]);
    const machine = await revoke('--run', 'x', ...because, '--json');
    expect(JSON.parse(machine.stderr)).toMatchObject({ error: { violations: [{ field: 'run_id', option: '--run' }] } });
    expect((await revoke('--run', '0'.repeat(32), ...because)).code).toBe(6);
    expect((await revoke('--run', '0'.repeat(32), ...because, '--as', 'auditor')).code).toBe(77);
    for (const [command, shown] of [
      [['in-doubt', 'settle', 'x', '--outcome', 'happened', ...because], '<write>'],
      [['keys', 'retire', 'x', ...because], '<key-id>'],
    ] as const)
      expect((await writ(command)).stderr).toContain(`\n  ${shown}: must be`);
  });
});

describe('writ exec --audience', () => {
  it('gives the command a credential that the target takes, in a file for its owner only, and nowhere else', async () => {
    const script = `
      echo "path $WRIT_CREDENTIAL_FILE"
      echo "all $WRIT_CREDENTIAL_FILES"
      stat -c 'mode %a' "$WRIT_CREDENTIAL_FILE" "$(dirname "$WRIT_CREDENTIAL_FILE")"
      echo "token $(cat "$WRIT_CREDENTIAL_FILE")"
      env | sed 's/^/env /'
      tr '\\0' ' ' < /proc/$PPID/cmdline | sed 's/^/argv /'; echo
      $WRIT check --credential-file "$WRIT_CREDENTIAL_FILE" --resource item/creds --action set
      $WRIT check --credential-file - --resource item/creds --action patch < "$WRIT_CREDENTIAL_FILE"
      echo "patch $?"`;
    const { code, stdout, stderr } = await under('item/creds', '60s', script, '--audience', 'target');
    expect(code, stderr).toBe(0);
    const said = (word: string) =>
      stdout.split('\n').flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []));
    const [path = ''] = said('path');
    const [token = ''] = said('token');
    expect(token).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(JSON.parse(said('all')[0] ?? '')).toEqual({ target: path });
    expect(said('mode')).toEqual(['600', '700']);
    expect(stdout).toContain('allowed (ok)');
    expect(stdout).toContain('denied (action_not_allowed)');
    expect(said('patch')).toEqual(['4']);
    for (const seen of [...said('env'), ...said('argv'), stderr, coordinator.log()]) expect(seen).not.toContain(token);
    expect(stdout).not.toContain(COORDINATORS_OWN);
    await expect(access(dirname(path))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('keeps it fresh for as long as the command runs: never half of one, and never one that has ended', async () => {
    // With a ttl of 18 s a credential lives some 12 seconds, and is replaced at two thirds of that.
    const script = `
      first=$(cat "$WRIT_CREDENTIAL_FILE")
      until [ "$(cat "$WRIT_CREDENTIAL_FILE")" != "$first" ]; do sleep 0.2; done
      $WRIT check --credential-file "$WRIT_CREDENTIAL_FILE" --resource item/fresh --action set`;
    const { code, stdout, stderr } = await under('item/fresh', '18s', script, '--audience', 'target');
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('allowed (ok)');
  });

  it('does not run the command when the credential is refused, and says why', async () => {
    const { code, stdout, stderr } = await under('item/short', '5s', 'echo ran', '--audience', 'target');
    expect([code, stdout]).toEqual([3, '']);
    expect(stderr).toContain('too_short');
    const again = await under('item/short', '5s', 'echo ran');
    expect(again.stdout).toBe('ran\n');
  });
});

describe('writ check', () => {
  const write = ['--resource', 'item/x', '--action', 'set'];

  it.each([
    ['nothing presented', []],
    ['both', ['--lease', 'a', '--token', '1', '--credential-file', '/dev/null']],
    ['a lease without a token', ['--lease', 'a']],
    ['a file that is not there', ['--credential-file', '/no/such/file']],
    ['an empty file', ['--credential-file', '/dev/null']],
    ['two keys', ['--credential-file', CLI, '--presenter-jkt', 'a', '--presenter-x5t', 'b']],
  ])('with %s is a wrong command line', async (_, args) => {
    const { code, stderr } = await writ(['check', ...args, ...write]);
    expect(code, stderr).toBe(2);
  });

  it('takes the credential from standard input, and denies rubbish with its reason', async () => {
    const { code, stdout } = await writ(['check', '--credential-file', '-', ...write], 'rubbish\n');
    expect(code).toBe(4);
    expect(stdout).toContain('denied');
  });

  it('is told which key the presenter has, and denies a bound credential without it', async () => {
    const runner = coordinator.client('runner');
    const { run } = await runner.run.createRun({
      purpose: 'a test',
      allowed: [{ pattern: 'item/{x...}', actions: ['*'] }],
      authorityEndsAt: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 600), nanos: 0 },
    });
    const runId = run?.runId ?? '';
    const { outcome } = await runner.lease.acquireWriteSet({
      runId,
      entries: [{ resource: 'item/bound', access: 3, actions: ['set'] }],
    });
    const leaseId = outcome?.$case === 'lease' ? outcome.value.leaseId : '';
    const jkt = 'A'.repeat(43);
    const issued = await runner.credential.issueCredential({
      runId,
      leaseId,
      audience: 'target',
      confirmation: { key: { $case: 'jkt', value: jkt } },
    });
    if (issued.outcome?.$case !== 'credential') throw new Error('no credential');
    const { token } = issued.outcome.value;
    const check = (...args: string[]) =>
      writ(['check', '--credential-file', '-', '--resource', 'item/bound', '--action', 'set', ...args], token);
    expect((await check()).stdout).toContain('denied (not_bound)');
    expect((await check('--presenter-jkt', 'B'.repeat(43))).stdout).toContain('denied (binding_mismatch)');
    expect((await check('--presenter-jkt', jkt)).stdout).toContain('allowed (ok)');
  });
});
