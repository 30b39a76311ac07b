import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGate,
  type FileOverrideJournal,
  fileOverrideJournal,
  type Gate,
  type GateOptions,
  GuardRefusedError,
  type OverrideJournal,
  postgresGuard,
} from '../../src/clients/target/index.js';
import { createRun, eventually, granted, putMap, write } from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';
import { latch } from '../support/target-servers.js';

/** The override of people in an emergency, with the coordinator gone and back (C12). */

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease } } }
`;

const ROUTES = {
  version: 1,
  routes: [
    {
      method: 'POST',
      path: '/releases/{env}/promote',
      writes: [{ resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer' }],
    },
  ],
};

let replica: ServedReplica;
let directory: string;
let database: TestDatabase;
const gates: Gate[] = [];
const journals: FileOverrideJournal[] = [];
let serial = 0;

beforeAll(async () => {
  replica = await startServedReplica();
  await putMap(replica.api, MAP);
  directory = await mkdtemp(join(tmpdir(), 'writ-override-'));
  database = await createTestDatabase();
});

afterAll(async () => {
  for (const gate of gates) await gate.close();
  for (const journal of journals) await journal.close();
  await replica?.stop();
  await database?.drop();
  await rm(directory, { recursive: true, force: true });
});

async function newJournal(name = `j-${++serial}`): Promise<FileOverrideJournal> {
  const journal = await fileOverrideJournal(join(directory, name));
  journals.push(journal);
  return journal;
}

function newGate(journal: OverrideJournal, more: Partial<GateOptions> = {}): Gate {
  const gate = createGate({
    client: replica.client('target', { timeoutMs: 1_000 }),
    routes: ROUTES,
    // The coordinator is there, though it may have a slow moment.
    checks: { timeoutMs: 20_000 },
    overrides: { journal },
    ...more,
  });
  gates.push(gate);
  return gate;
}

/** For a coordinator that is gone. */
const IMPATIENT: Partial<GateOptions> = { checks: { timeoutMs: 500 } };

const inAnHour = (): Date => new Date(Date.now() + 3_600_000);
const grant = () => ({
  id: `o-${++serial}`,
  who: 'alice',
  why: 'the release is broken',
  until: inAnHour(),
  patterns: ['release/{env}'],
});

const promote = (
  gate: Gate,
  person: string | undefined,
  requestId: string,
  path = '/releases/prod/promote',
  headers = {},
) =>
  gate.decide({
    method: 'POST',
    path,
    headers: { 'x-request-id': requestId, 'if-match': '"7"', ...headers },
    caller: { person },
  });

async function eventsOf(requestId: string) {
  const { events } = await replica.client('auditor').audit.listEvents({ requestId, kinds: ['override_reported'] });
  return events.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
}

describe('an override', () => {
  it('lets its person in while the coordinator is down, on record, and the coordinator is told when it is back', async () => {
    const journal = await newJournal();
    const gate = newGate(journal, IMPATIENT);
    const used = [`used-${++serial}`, `used-${++serial}`] as const;
    await replica.down();
    try {
      expect(await promote(gate, 'alice', 'before')).toMatchObject({ allowed: false, problem: { status: 503 } });
      const override = await gate.override(grant());
      const before = BigInt(Date.now()) * 1_000n;
      const decision = await promote(gate, 'alice', used[0]);
      expect(decision).toMatchObject({
        allowed: true,
        kind: 'writes',
        decidedBy: 'override',
        override,
        runId: '',
        toGuard: [{ resource: 'release/prod', exclusive: true, runId: `override:${override.id}` }],
      });
      if (decision.allowed && decision.kind === 'writes')
        expect(decision.toGuard[0]?.token).toBeGreaterThanOrEqual(before);
      // On record before anything was let in.
      expect((await journal.pending(10)).map(({ use }) => use?.requestId)).toEqual([undefined, used[0]]);
      expect(await promote(gate, 'alice', used[1])).toMatchObject({ allowed: true });
    } finally {
      await replica.up();
    }
    await eventually(
      () => journal.pending(10),
      (pending) => pending.length === 0,
    );
    for (const id of used)
      expect(await eventsOf(id)).toMatchObject([
        {
          who: 'alice',
          use: { writes: [{ resource: 'release/prod', action: 'promote', observedVersion: '7' }] },
        },
      ]);
  });

  it('records every request, also when a person gives them all the same id', async () => {
    const journal = await newJournal();
    const gate = newGate(journal);
    await gate.override(grant());
    const incident = `inc-${++serial}`;
    for (const env of ['a', 'b', 'a'])
      expect(await promote(gate, 'alice', incident, `/releases/${env}/promote`)).toMatchObject({ allowed: true });
    await eventually(
      () => journal.pending(10),
      (pending) => pending.length === 0,
    );
    const resources = (await eventsOf(incident)).map(({ use }) => (use as { writes: [object] }).writes[0]);
    expect(resources).toMatchObject(['a', 'b', 'a'].map((env) => ({ resource: `release/${env}` })));
  });

  it('is for its person, its resources and its time alone, and for requests that present nothing', async () => {
    const gate = newGate(await newJournal());
    const made = await gate.override({ ...grant(), patterns: ['release/prod', 'release/prod-eu'] });
    const decidedBy = async (...args: Parameters<typeof promote>) => {
      const decision = await promote(...args);
      return decision.allowed && decision.kind === 'writes'
        ? decision.decidedBy
        : !decision.allowed && decision.problem.code;
    };
    expect(await decidedBy(gate, 'alice', 'a')).toBe('override');
    expect(await decidedBy(gate, 'bob', 'b')).toBe('credential_required');
    expect(await decidedBy(gate, undefined, 'c')).toBe('credential_required');
    expect(await decidedBy(gate, 'alice', 'd', '/releases/staging/promote')).toBe('credential_required');
    expect(
      await decidedBy(gate, 'alice', 'e', '/releases/prod/promote', { 'writ-lease': 'x', 'writ-fencing-token': '1' }),
    ).toBe('unknown_lease');
    expect(gate.endOverride(made.id)).toBe(true);
    expect(gate.endOverride(made.id)).toBe(false);
    expect(await decidedBy(gate, 'alice', 'f')).toBe('credential_required');
    const brief = await gate.override({ ...grant(), until: new Date(Date.now() + 300) });
    await eventually(
      () => Date.now(),
      (now) => now > brief.until.getTime(),
    );
    expect(await decidedBy(gate, 'alice', 'g')).toBe('credential_required');
  });

  it('that is ended while its use is being recorded lets nothing in', async () => {
    const [entered, recorded] = [latch(), latch()];
    const slow: OverrideJournal = {
      append: async ({ use }) => {
        if (use === null) return;
        entered.open();
        await recorded.promise;
      },
      pending: async () => [],
      reported: async () => undefined,
    };
    const gate = newGate(slow);
    const made = await gate.override(grant());
    const decided = promote(gate, 'alice', 'x');
    await entered.promise;
    expect(gate.endOverride(made.id)).toBe(true);
    recorded.open();
    expect(await decided).toMatchObject({ allowed: false, problem: { code: 'credential_required' } });
  });

  it('that cannot be recorded lets nothing in', async () => {
    const broken: OverrideJournal = {
      append: ({ use }) => (use === null ? Promise.resolve() : Promise.reject(new Error('the disk is full'))),
      pending: async () => [],
      reported: async () => undefined,
    };
    const problems: unknown[] = [];
    const gate = newGate(broken, { onProblem: (what) => problems.push(what) });
    await gate.override(grant());
    expect(await promote(gate, 'alice', 'x')).toMatchObject({
      allowed: false,
      problem: { status: 503, code: 'override_not_recorded' },
    });
    expect(problems).toEqual(['the use of an override could not be recorded']);
    const deaf = newGate({ ...broken, append: () => Promise.reject(new Error('the disk is full')) });
    await expect(deaf.override(grant())).rejects.toThrow('the disk is full');
    expect(await promote(deaf, 'alice', 'x')).toMatchObject({ allowed: false });
  });

  it('that is declared in the configuration is in force from the start, and over in time', async () => {
    const journal = await newJournal();
    const past = { ...grant(), until: new Date(Date.now() - 1_000) };
    const inForce = { ...grant(), who: 'carol' };
    const [use, nextUse] = [`declared-${++serial}`, `declared-${++serial}`];
    const declared = [past, inForce];
    const gate = newGate(journal, { overrides: { journal, declared } });
    expect(await promote(gate, 'carol', use)).toMatchObject({ allowed: true, override: { id: inForce.id } });
    expect(await promote(gate, 'alice', 'past-use')).toMatchObject({ allowed: false });
    await eventually(
      () => eventsOf(use),
      (events) => events.length === 1,
    );
    // At the next start the same declaration is the same override.
    const again = newGate(journal, { overrides: { journal, declared } });
    expect(await promote(again, 'carol', nextUse)).toMatchObject({ allowed: true });
    await eventually(
      () => eventsOf(nextUse),
      (events) => events.length === 1,
    );
    await eventually(
      () => journal.pending(10),
      (pending) => pending.length === 0,
    );
  });

  it('that a gate did not get to tell of is told by the next one', async () => {
    const name = `j-${++serial}`;
    const use = `left-behind-${++serial}`;
    const journal = await newJournal(name);
    const gate = newGate(journal);
    await replica.down();
    try {
      await gate.override(grant());
      expect(await promote(gate, 'alice', use)).toMatchObject({ allowed: true });
      await gate.close();
      await gate.close();
    } finally {
      await replica.up();
    }
    expect(await journal.pending(10)).toHaveLength(2);
    newGate(await newJournal(name));
    await eventually(
      () => eventsOf(use),
      (events) => events.length === 1,
    );
  });

  it('that the coordinator refuses holds up no other, and is told to the service', async () => {
    const journal = await newJournal();
    const [taken, fine] = [grant(), grant()];
    // Somebody has used this name with another reason.
    await replica.client('target').fence.reportOverride({
      overrideId: taken.id,
      who: 'x',
      why: 'x',
      until: { seconds: 1n, nanos: 0 },
      patterns: ['x'],
    });
    const problems: string[] = [];
    const gate = newGate(journal, { onProblem: (what) => problems.push(what) });
    await gate.override(taken);
    await gate.override(fine);
    await eventually(
      () => journal.pending(10),
      (pending) => pending.length === 1,
    );
    expect((await journal.pending(10))[0]?.override.id).toBe(taken.id);
    expect(problems).toContain(`the coordinator refuses the report of override ${taken.id}; it stays in the journal`);
  });

  it('is told of however many before it are refused', async () => {
    const journal = await newJournal();
    const REFUSED = 150;
    // Without a person nobody takes it.
    for (let n = 0; n < REFUSED; n += 1) await journal.append({ override: { ...grant(), who: '' }, use: null });
    const gate = newGate(journal);
    await gate.override(grant());
    const use = `behind-refused-${++serial}`;
    expect(await promote(gate, 'alice', use)).toMatchObject({ allowed: true });
    await eventually(
      () => eventsOf(use),
      (events) => events.length === 1,
    );
    await eventually(
      () => journal.pending(1_000),
      (pending) => pending.length === REFUSED,
    );
  });

  it.each([
    ['a past end', { until: new Date(0) }, 'until must be in the next 24 hours'],
    ['an end in two days', { until: new Date(Date.now() + 48 * 3_600_000) }, 'until must be in the next 24 hours'],
    ['no end', { until: new Date(Number.NaN) }, 'until must be in the next 24 hours'],
    ['nobody', { who: ' ' }, 'who must be a person'],
    ['no reason', { why: '' }, 'why must be a reason'],
    ['no resources', { patterns: [] }, 'patterns must be 1 to 32'],
    ['a pattern that is none', { patterns: ['release//x'] }, 'is no pattern of resources'],
    ['an id that is none', { id: 'a\nb' }, 'id must be 1 to 128 printable'],
  ])('with %s is none', async (_name, wrong, message) => {
    const gate = newGate(await newJournal());
    await expect(gate.override({ ...grant(), ...wrong })).rejects.toThrow(message);
  });

  it('needs a gate with a journal', async () => {
    const gate = createGate({ client: replica.client('target'), routes: ROUTES });
    gates.push(gate);
    await expect(gate.override(grant())).rejects.toThrow('this gate has no journal for overrides');
  });
});

describe('the guard', () => {
  it('takes the write of a person, and from then on none of a run that was granted before (C7)', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 2 });
    pool.on('error', () => undefined);
    try {
      const guard = postgresGuard();
      await guard.install(pool);
      const admit = async (writes: Parameters<typeof guard.admit>[1][]) => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          await guard.admit(client, ...writes);
          await client.query('COMMIT');
          return 'ok';
        } catch (error) {
          await client.query('ROLLBACK');
          if (error instanceof GuardRefusedError) return error.reason;
          throw error;
        } finally {
          client.release();
        }
      };
      const runId = await createRun(replica.api);
      const env = `guarded-${++serial}`;
      const lease = await granted(replica.api, runId, [write(`release/${env}`, 'promote')]);
      const gate = newGate(await newJournal());
      await gate.override(grant());
      const path = `/releases/${env}/promote`;
      const byRun = { 'writ-lease': lease.leaseId, 'writ-fencing-token': String(lease.entries[0]?.token) };
      const ofRun = await promote(gate, undefined, 'run-1', path, byRun);
      const ofPerson = await promote(gate, 'alice', 'person-1', path);
      if (!ofRun.allowed || ofRun.kind !== 'writes' || !ofPerson.allowed || ofPerson.kind !== 'writes')
        throw new Error('not let in');
      expect(await admit([...ofRun.toGuard])).toBe('ok');
      expect(await admit([...ofPerson.toGuard])).toBe('ok');
      expect(await admit([...ofRun.toGuard])).toBe('stale_token');
      await replica.client('runner').lease.releaseLease({ runId, lease: { $case: 'leaseId', value: lease.leaseId } });
      const next = await granted(replica.api, runId, [write(`release/${env}`, 'promote')]);
      const ofNext = await promote(gate, undefined, 'run-2', path, {
        'writ-lease': next.leaseId,
        'writ-fencing-token': String(next.entries[0]?.token),
      });
      if (!ofNext.allowed || ofNext.kind !== 'writes') throw new Error('not let in');
      expect(await admit([...ofNext.toGuard])).toBe('ok');
    } finally {
      await pool.end();
    }
  });
});
