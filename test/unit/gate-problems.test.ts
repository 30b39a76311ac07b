import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { grpcStatusOf } from '../../src/clients/target/gate-grpc-status.js';
import { deniedBy } from '../../src/clients/target/gate-problems.js';
import { GuardRefusedError } from '../../src/clients/target/guard.js';
import { problem } from '../../src/clients/target/problem.js';
import { problemOf } from '../../src/clients/target/problem-of.js';
import { ErrorInfo, RetryInfo } from '../../src/gen/google/rpc/error_details.js';
import { Status } from '../../src/gen/google/rpc/status.js';
import { FenceReason } from '../../src/gen/writ/v1/fence_service.js';

const WRITE = {
  resource: 'release/prod',
  action: 'promote',
  changeClass: 'shared_pointer',
  resolver: 'release-owner',
} as const;

const denied = (reason: string) => ({
  allowed: false,
  reason,
  message: `It is ${reason}.`,
  observedOnly: false,
  token: undefined,
  exclusive: false,
  explicit: false,
  admissionId: '',
});

const of = (reason: string) => deniedBy({ writes: [denied(reason)], reason, message: '' }, [WRITE], 'r-1');

const REASONS = Object.values(FenceReason)
  .filter((name) => typeof name === 'string')
  .map((name) => name.replace('FENCE_REASON_', '').toLowerCase())
  .filter((name) => !['ok', 'unspecified', 'unrecognized'].includes(name));

describe('a denied fence check', () => {
  it.each(REASONS)('%s has a status of its own choice and says what to do', (reason) => {
    const { problem: told, headers } = of(reason);
    expect(told).toMatchObject({
      code: reason,
      detail: `It is ${reason}.`,
      resource: 'release/prod',
      action: 'promote',
    });
    expect(told.next).toMatch(/\.$/);
    // Forbidden for a reason that nobody has thought of is for coordinators that are newer than this kit.
    expect(told.status).toBe(STATUS[reason]);
    expect('www-authenticate' in headers).toBe(told.status === 401);
  });

  it('for a reason that this kit does not know is forbidden', () => {
    expect(of('moon_is_full').problem).toMatchObject({ status: 403, code: 'moon_is_full', retryable: false });
  });
});

/** Who never had the right: 401 and 403. Who has it no more, or not now: 409. */
const STATUS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    'stale_token released expired no_progress revoked run_stopped run_ended taken_over unclaimed database_changed map_changed parent_ended suspended frozen in_doubt not_granted'
      .split(' ')
      .map((reason) => [reason, 409]),
  ),
  ...Object.fromEntries(
    'not_covered action_not_allowed wrong_holder unknown_lease future_token no_write_authority wrong_target'
      .split(' ')
      .map((reason) => [reason, 403]),
  ),
  ...Object.fromEntries(
    'oversize malformed header_not_allowed alg_not_allowed wrong_type unknown_key bad_signature wrong_issuer claim_missing claim_invalid wrong_audience credential_expired not_yet_valid not_bound binding_mismatch credential_revoked'
      .split(' ')
      .map((reason) => [reason, 401]),
  ),
  version_required: 428,
};

describe('a problem', () => {
  it('has its type and title, and leaves out what is not there', () => {
    const made = problem({ status: 412, code: 'version_conflict', detail: 'd', resource: 'a', resolver: undefined });
    expect(made).toEqual({
      type: 'urn:writ:problem:version_conflict',
      title: 'Version conflict',
      status: 412,
      detail: 'd',
      code: 'version_conflict',
      retryable: false,
      resource: 'a',
    });
    expect(Object.keys(made)).not.toContain('resolver');
    expect(() => problem({ status: 412, code: 'Version Conflict', detail: 'd' })).toThrow(TypeError);
  });

  it('as a gRPC status carries the code and the members, and fits into trailers', () => {
    const status = grpcStatusOf(
      problem({
        status: 503,
        code: 'coordinator_unreachable',
        detail: `${'😀'.repeat(2_000)}`,
        retryable: true,
        retry_after: 2,
        request_id: 'r-1',
        next: 'n'.repeat(3_000),
        refused: [{ resource: 'a' }],
      }),
    );
    const [bytes] = status.metadata.get('grpc-status-details-bin');
    expect((bytes as Buffer).length).toBeLessThan(4_000);
    const { code, message, details } = Status.decode(bytes as Buffer);
    expect([code, message]).toEqual([14, status.details]);
    expect(status.details.isWellFormed()).toBe(true);
    const [info, retry] = details;
    expect(ErrorInfo.decode(info?.value ?? new Uint8Array())).toMatchObject({
      reason: 'COORDINATOR_UNREACHABLE',
      domain: 'writ',
      metadata: { retryable: 'true', request_id: 'r-1', retry_after: '2' },
    });
    expect(RetryInfo.decode(retry?.value ?? new Uint8Array()).retryDelay).toEqual({ seconds: 2n, nanos: 0 });
    expect(status.metadata.get('x-request-id')).toEqual(['r-1']);
  });
});

describe("a guard's refusal", () => {
  it('says who resolves it, as far as the write said so', () => {
    const path = { changeClass: 'shared_pointer', resolver: 'release-owner' } as const;
    expect(problemOf(new GuardRefusedError('stale_token', 'release/prod', 'promote', path), 'r-1')).toMatchObject({
      status: 409,
      code: 'stale_token',
      resource: 'release/prod',
      action: 'promote',
      conflict_category: 'shared_pointer',
      resolver: 'release-owner',
      retryable: false,
      request_id: 'r-1',
    });
    const bare = problemOf(new GuardRefusedError('stale_token', 'release/prod', ''));
    for (const member of ['action', 'conflict_category', 'resolver', 'request_id'])
      expect(bare).not.toHaveProperty(member);
  });
});

describe('the guide to the target kit', () => {
  it('names every code of the gate and its guard', () => {
    const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
    const sources = ['gate', 'gate-problems', 'problem-of']
      .map((name) => read(`src/clients/target/${name}.ts`))
      .join('\n');
    const codes = [
      ...sources.matchAll(/code: '(\w+)'|undecided\('(\w+)'|'(gate_\w+)'|=== '(keys_\w+|proof_limit|check_failed)'/g),
    ];
    const own = new Set(codes.flatMap((match) => match.slice(1).filter(Boolean)));
    expect(own.size).toBeGreaterThanOrEqual(8);
    const table = read('docs/target-kit.md').split('\n## Problems\n')[1]?.split('\n## ')[0] ?? '';
    for (const code of own) expect(table, code).toContain(`\`${code}\``);
  });
});
