import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { transportOf } from '../../src/clients/common/channel.js';
import { parseRehearsalConfig, type ResourceResult, rehearse } from '../../src/rehearsal/index.js';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import { BelievesTheLease } from '../support/broken-targets/believes-the-lease.js';
import { CheckWithoutGuard } from '../support/broken-targets/check-without-guard.js';
import { FailsOpen } from '../support/broken-targets/fails-open.js';
import { FailsOpenOnSilence } from '../support/broken-targets/fails-open-on-silence.js';
import { GuardInAnotherTransaction } from '../support/broken-targets/guard-in-another-transaction.js';
import { GuardWithoutCheck } from '../support/broken-targets/guard-without-check.js';
import { GuardWithoutOpen } from '../support/broken-targets/guard-without-open.js';
import { KeepsTheVersion } from '../support/broken-targets/keeps-the-version.js';
import { KeyClaimedLate } from '../support/broken-targets/key-claimed-late.js';
import { KeyIgnoresBody } from '../support/broken-targets/key-ignores-body.js';
import { BelievesCredentials, KnowsCredentials } from '../support/broken-targets/knows-credentials.js';
import { LastWriteWins } from '../support/broken-targets/last-write-wins.js';
import { NeverWrites } from '../support/broken-targets/never-writes.js';
import { NoFence } from '../support/broken-targets/no-fence.js';
import { type KindName, rehearsalConfig, TARGETS_MAP } from '../support/broken-targets/rehearsal.js';
import { ReportsWrites } from '../support/broken-targets/reports-writes.js';
import { RetriesOldBody } from '../support/broken-targets/retries-old-body.js';
import { runTarget } from '../support/broken-targets/run-target.js';
import { Service, type ServiceOptions } from '../support/broken-targets/service.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { createTestDatabase } from '../support/postgres.js';

/**
 * The suite against services of which each has one defect: it must find nothing in the good one, and in each other one
 * exactly what its defect does. A case that no defect turns red proves nothing, so there is one for each.
 */

let coordinator: CoordinatorProcess;

beforeAll(async () => {
  coordinator = await startCoordinatorProcess();
  const admin = coordinator.client('admin');
  await admin.conflictMap.putConflictMap({ document: TARGETS_MAP, reason: 'a test' });
});

afterAll(() => coordinator?.stop());

interface How {
  readonly kinds?: readonly KindName[];
  readonly audience?: string;
  readonly only?: readonly string[];
  /** The service asks the coordinator itself, past the suite's proxy. */
  readonly pastProxy?: boolean;
  /** Changes the text of the configuration. */
  readonly as?: (config: string) => string;
}

async function rehearsed(
  Kind: new (options: ServiceOptions) => Service,
  { only, pastProxy = false, as = String, ...more }: How = {},
): Promise<readonly ResourceResult[]> {
  const database = await createTestDatabase();
  const [runKey, proxyPort] = [randomBytes(16).toString('hex'), await freePort()];
  const target = await runTarget(Kind, {
    databaseUrl: database.url,
    coordinator: pastProxy ? coordinator.grpc : `127.0.0.1:${proxyPort}`,
    token: coordinator.tokens.target,
    runKey,
    issuer: `http://${coordinator.http}`,
  });
  try {
    return await rehearse({
      config: parseRehearsalConfig(as(rehearsalConfig({ runKey, proxyPort, ...more }))),
      ...(only === undefined ? {} : { only }),
      url: target.url,
      runner: coordinator.client('runner'),
      operator: coordinator.client('operator'),
      upstream: () => transportOf(coordinator.grpc, {}),
    });
  } finally {
    await target.stop();
    await database.drop();
  }
}

/** `case of kind` for each that came out so, in order. */
function those(results: readonly ResourceResult[], ...outcomes: readonly string[]): string[] {
  return results.flatMap(({ resource, cases }) =>
    cases.filter(({ outcome }) => outcomes.includes(outcome)).map(({ name }) => `${name} of ${resource.split('/')[0]}`),
  );
}

const told = (results: readonly ResourceResult[]) =>
  results.flatMap(({ resource, cases }) =>
    cases
      .filter(({ outcome }) => outcome !== 'passed')
      .map(({ name, outcome, message }) => `${resource} ${name} ${outcome}: ${message}`),
  );

const WAYS = ['verdict', 'after_check', 'before_commit'];

const past = (what: 'open' | 'write', ways: readonly string[], ...kinds: readonly string[]) =>
  kinds.flatMap((kind) => ways.map((way) => `write_past_${what}:${way} of ${kind}`));

const of = (kind: string, ...names: readonly string[]) => names.map((name) => `${name} of ${kind}`);

describe('the rehearsal', () => {
  it('finds nothing wrong with a service that does everything right', async () => {
    const results = await rehearsed(Service);
    expect(those(results, 'failed', 'undecided'), told(results).join('\n')).toEqual([]);
    expect(results.map(({ passed }) => passed)).toEqual([true, true, true]);
    // What does not apply is told as such, and is not much.
    expect(those(results, 'not_applicable')).toEqual([
      ...of('release', 'whole_replacement', 'membership'),
      ...of('policy', 'two_candidates', 'membership', 'late_write'),
      ...past('open', WAYS, 'policy'),
      ...of('policy', 'lost_history', 'late_write_coordinator_down'),
      ...of('group', 'two_candidates', 'late_write'),
      ...past('open', WAYS, 'group'),
      ...of('group', 'lost_history', 'late_write_coordinator_down'),
    ]);
  }, 240_000);

  it('finds nothing wrong with one to which runs present credentials', async () => {
    const results = await rehearsed(KnowsCredentials, { kinds: ['release'], audience: 'target' });
    expect(those(results, 'failed', 'undecided'), told(results).join('\n')).toEqual([]);
    // Nobody can make one up, or borrow one: whoever presents it is its run.
    expect(those(results, 'not_applicable')).toEqual(
      of('release', 'whole_replacement', 'membership', 'borrowed_lease', 'lost_history'),
    );
  }, 240_000);

  it('finds nothing wrong with one that believes credentials, where the kind has it so', async () => {
    const results = await rehearsed(BelievesCredentials, {
      kinds: ['release'],
      audience: 'target',
      only: [
        'conflict',
        'late_write',
        'write_past_open:verdict',
        'write_past_open:before_commit',
        'stopped_run',
        'coordinator_down',
      ],
      as: (config) => config.replaceAll('release/rehearsal', 'release/local'),
    });
    expect(those(results, 'passed'), told(results).join('\n')).toEqual(
      of('release', 'conflict', 'late_write', 'write_past_open:before_commit', 'coordinator_down'),
    );
    expect(those(results, 'not_applicable')).toEqual(of('release', 'write_past_open:verdict', 'stopped_run'));
    expect(results[0]?.cases.at(-1)?.steps).toContain('accepted without asking, as this kind has it');
  }, 400_000);

  it('finds nothing wrong with one that reports its writes, where they are tracked', async () => {
    const only = [
      'conflict',
      'resend',
      'late_write',
      'write_past_open:verdict',
      'write_past_write:before_commit',
      'stopped_run',
    ];
    const results = await rehearsed(ReportsWrites, {
      kinds: ['release'],
      only,
      as: (config) => config.replaceAll('release/rehearsal', 'release/tracked'),
    });
    expect(those(results, 'passed'), told(results).join('\n')).toEqual(of('release', ...only));
    // Nobody is granted what an open write was let in for, so that there is no gap to fall into.
    const inFlight = results[0]?.cases.find(({ name }) => name === 'write_past_open:verdict');
    expect(inFlight?.steps).toContain("B is not granted it while A's write is under way; A goes on");
  }, 240_000);

  it('does not judge what a service does without the coordinator when it asks past the proxy', async () => {
    const only = [
      'conflict',
      'late_write',
      'write_past_open:verdict',
      'late_write_coordinator_down',
      'coordinator_down',
    ];
    const results = await rehearsed(Service, { kinds: ['release'], pastProxy: true, only });
    expect(those(results, 'passed'), told(results).join('\n')).toEqual(of('release', 'conflict', 'late_write'));
    expect(those(results, 'undecided')).toEqual(of('release', 'late_write_coordinator_down', 'coordinator_down'));
    const { message } = results[0]?.cases.at(-1) ?? {};
    expect(message).toMatch(
      /never asked .* proxy.*: start it with 127\.0\.0\.1:\d+ \(.*\) as its coordinator, or it asks nobody/,
    );
  }, 120_000);

  it('plays a gap that is declared, and tells it as one', async () => {
    const gaps = '    gaps: { write_past_open: it keeps no marks, conflict: it might lose updates }\n';
    const only = ['conflict', 'write_past_open:verdict', 'write_past_write:verdict'];
    const results = await rehearsed(CheckWithoutGuard, { kinds: ['release'], only, as: (config) => config + gaps });
    expect(those(results, 'declared_gap'), told(results).join('\n')).toEqual(past('open', ['verdict'], 'release'));
    expect(those(results, 'failed')).toEqual(past('write', ['verdict'], 'release'));
    const [notSeen, seen] = results[0]?.cases ?? [];
    expect(seen?.message).toMatch(
      /^it keeps no marks\. Seen: A's write was let in before B took over, and landed after/,
    );
    expect([notSeen?.outcome, notSeen?.message]).toEqual(['passed', expect.stringContaining('and not seen')]);
    const unknown = {
      kinds: ['release'] as const,
      as: (config: string) => config + gaps.replace('conflict', 'conflct'),
    };
    await expect(rehearsed(CheckWithoutGuard, unknown)).rejects.toThrow('resources[0].gaps.conflct: is no case');
  }, 120_000);

  it('does not blame the coordinator for a service that never writes', async () => {
    const only = ['conflict', 'race', 'coordinator_down'];
    const results = await rehearsed(NeverWrites, { kinds: ['policy'], only });
    expect(those(results, 'undecided'), told(results).join('\n')).toEqual(of('policy', 'conflict', 'coordinator_down'));
    const [, race, down] = results[0]?.cases ?? [];
    expect(race).toMatchObject({
      outcome: 'failed',
      message: 'neither of two changes from version 41 was accepted (500 fault, and 500 fault; round 1)',
    });
    expect(down?.message).toBe("the holder's write was refused before the coordinator was taken away (500 fault)");
    expect(down?.steps.slice(1, 5)).toEqual([
      'A read version 41',
      'A wrote change a from version 41: 500 fault',
      'not yet',
      expect.stringMatching(/^… \d+ more times$/),
    ]);
  }, 120_000);

  it.each<[string, typeof Service, readonly KindName[], readonly string[], (readonly string[])?]>([
    [
      'last write wins',
      LastWriteWins,
      ['release', 'group'],
      [
        ...of('release', 'conflict', 'missing_precondition', 'race', 'resend', 'two_candidates'),
        ...of('group', 'conflict', 'whole_replacement', 'race', 'resend', 'membership'),
        ...past('write', WAYS, 'group'),
      ],
    ],
    [
      'check without guard',
      CheckWithoutGuard,
      ['release'],
      WAYS.flatMap((way) => [...past('open', [way], 'release'), ...past('write', [way], 'release')]),
    ],
    [
      'guard in another transaction',
      GuardInAnotherTransaction,
      ['release'],
      [...past('open', ['before_commit'], 'release'), ...past('write', ['before_commit'], 'release')],
    ],
    ['guard without open', GuardWithoutOpen, ['release'], past('open', WAYS, 'release')],
    ['key that is claimed late', KeyClaimedLate, ['policy'], of('policy', 'same_key_at_once')],
    ['key that ignores the body', KeyIgnoresBody, ['policy'], of('policy', 'key_with_another_body')],
    [
      'retry of the old body',
      RetriesOldBody,
      ['release'],
      of('release', 'conflict', 'race', 'resend', 'two_candidates'),
    ],
    ['no answer taken for a yes', FailsOpen, ['policy'], of('policy', 'coordinator_down')],
    ['no answer in time taken for a yes', FailsOpenOnSilence, ['policy'], of('policy', 'coordinator_down')],
    ['a conflict that does not show the current version', KeepsTheVersion, ['group'], of('group', 'conflict')],
    [
      'guard without check',
      GuardWithoutCheck,
      ['policy'],
      of('policy', 'undeclared_write', 'borrowed_lease', 'stopped_run'),
      of('policy', 'coordinator_down'),
    ],
    ['lease of anybody', BelievesTheLease, ['policy'], of('policy', 'borrowed_lease')],
    [
      'neither check nor guard',
      NoFence,
      ['release'],
      [
        ...of('release', 'undeclared_write', 'borrowed_lease', 'late_write'),
        ...['after_check', 'before_commit'].flatMap((way) => [
          ...past('open', [way], 'release'),
          ...past('write', [way], 'release'),
        ]),
        ...of('release', 'lost_history', 'stopped_run'),
      ],
      of('release', 'late_write_coordinator_down', 'coordinator_down'),
    ],
  ])(
    'finds exactly what is wrong with: %s',
    async (_, Kind, kinds, expected, undecided = []) => {
      const results = await rehearsed(Kind, { kinds });
      expect(those(results, 'undecided'), told(results).join('\n')).toEqual(undecided);
      expect(those(results, 'failed'), told(results).join('\n')).toEqual(expected);
      expect(results.every(({ passed }) => passed)).toBe(false);
    },
    240_000,
  );
});
