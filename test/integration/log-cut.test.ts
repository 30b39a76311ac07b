import { createHash, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import type { Checkpoint } from '../../src/services/api.js';
import { formatEvent, formatHeader } from '../../src/services/log-export.js';
import { verifyLogs } from '../../src/services/verify-log.js';
import type { EventRecord, Store } from '../../src/storage/store.js';
import {
  as,
  check,
  createRun,
  eventually,
  granted,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { latch } from '../support/target-servers.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

// A2: the beginning of the log is archived and cut at a checkpoint; what is kept says so, and is verified with the archive.

const MAP = `
version: 1
kinds:
  - { pattern: "doc/{id}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
`;
const DAY_MS = 86_400_000;

let pair: TwoReplicas;
let sql: pg.Client;
let a: TestReplica;
let b: TestReplica;
/** While it is there, the second replica hears nothing of its database. */
let paused: Promise<void> | null = null;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: MAP, b: { wrap: pausable } });
  ({ a, b } = pair);
  sql = new pg.Client({ connectionString: pair.database.url });
  await sql.connect();
});

afterAll(async () => {
  await sql?.end();
  await pair?.stop();
});

/** As a process that was stopped: it asks, and goes on where it was when it is let. */
function pausable(store: Store): Store {
  return {
    ...store,
    readGate: async (...args) => {
      await paused;
      return store.readGate(...args);
    },
    readTail: async (...args) => {
      await paused;
      return store.readTail(...args);
    },
  };
}

async function exported(afterRevision: number, upto: number, replica = a): Promise<EventRecord[]> {
  const events: EventRecord[] = [];
  for await (const batch of replica.api.exportEvents(as('auditor'), { afterRevision })) events.push(...batch);
  return events.filter(({ revision }) => revision <= upto);
}

/** An export as the command writes it. */
async function fileOf(checkpoint: Checkpoint, after = 0): Promise<Buffer> {
  const events = await exported(after, checkpoint.revision);
  const first = events[0];
  const afterRevision = (first?.revision ?? 1) - 1;
  const afterHash = afterRevision === 0 ? null : (first?.prevHash ?? null);
  const header = formatHeader({ namespace: 'default', afterRevision, afterHash, checkpoint });
  return Buffer.from(`${[header, ...events.map(formatEvent)].join('\n')}\n`);
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

async function* chunksOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const verified = (...files: Buffer[]) => verifyLogs(files.map(chunksOf));

async function someEvents(): Promise<void> {
  for (let i = 0; i < 5; i += 1) {
    const runId = await createRun(a.api);
    await granted(a.api, runId, [write(`doc/${randomUUID()}`, 'replace')], { purpose: 'to be forgotten' });
    await a.api.stopRun(as('operator'), { runId, reason: 'done' });
  }
}

async function cut(checkpoint: Checkpoint, archive: Buffer, evenYoung = true) {
  const input = { checkpoint, archiveDigest: sha256(archive), evenYoung, reason: 'the disk is small' };
  return a.api.cutLog(as('admin'), input);
}

/** How often it was cut. */
async function cuts(): Promise<number> {
  const { items } = await a.api.listEvents(as('auditor'), {
    ...{ runId: '', leaseId: '', resource: '', kinds: ['log_cut'], requestId: '' },
    ...{ newestFirst: true, afterRevision: 0, page: { size: 100, token: '' } },
  });
  return items.length;
}

describe('a log that is archived and cut', () => {
  /** One, and one more of a first attempt that had got so far. */
  const archives: Buffer[] = [];

  test('goes on, is verified with its archive, and nobody who was behind takes it for another history', async () => {
    const runId = await createRun(a.api);
    const lease = await granted(b.api, runId, [write(`doc/${randomUUID()}`, 'replace')], { ttl: 300 * SECOND });
    await someEvents();
    const { revision: behind } = await check(b.api, lease);
    const resumed = latch();
    paused = resumed.promise;
    const goOn = () => {
      paused = null;
      resumed.open();
    };
    onTestFinished(goOn);
    await someEvents();
    const checkpoint = await a.api.getCheckpoint(as('auditor'));
    const began = (await exported(0, checkpoint.revision))[0]?.revision ?? 0;
    const archive = await fileOf(checkpoint);
    await someEvents();

    const done = await cut(checkpoint, archive);
    archives.push(archive);
    const removed = checkpoint.revision - began + 1;
    expect(done.value).toMatchObject({ firstRevision: checkpoint.revision + 1, removed, left: 0 });
    const rows = await sql.query<{ low: string; texts: string; requests: string }>(
      `SELECT (SELECT min(revision) FROM writ.event) AS low,
        (SELECT count(*) FROM writ.event_text WHERE revision <= $1) AS texts,
        (SELECT count(*) FROM writ.event_request WHERE revision <= $1) AS requests`,
      [checkpoint.revision],
    );
    expect(rows.rows[0]).toEqual({ low: String(checkpoint.revision + 1), texts: '0', requests: '0' });

    // The other replica wakes far below the cut: it loads the projections, and nothing ends.
    expect(behind).toBeLessThan(checkpoint.revision);
    goOn();
    const seen = await eventually(
      () => check(b.api, lease).catch((error: unknown) => ({ allowed: false, error: String(error) })),
      ({ allowed }) => allowed,
    );
    expect(seen).toMatchObject({ allowed: true });
    const lost = await a.api.listEvents(as('auditor'), {
      ...{ runId: '', leaseId: '', resource: '', kinds: ['database_identified'], requestId: '' },
      ...{ newestFirst: true, afterRevision: 0, page: { size: 100, token: '' } },
    });
    expect(lost.items.map(({ body }) => JSON.parse(body).lostHistory)).not.toContain(true);
    expect(lost.firstRevision).toBe(checkpoint.revision + 1);

    const rest = await fileOf(await a.api.getCheckpoint(as('auditor')));
    expect(await verified(...archives, rest)).toMatchObject({ ok: true, firstRevision: 1, remarks: [] });
    // The record of the cut vouches for where the rest begins; without it nothing does.
    const alone = await verified(rest);
    expect(alone).toMatchObject({ ok: true, firstRevision: checkpoint.revision + 1 });
    expect(alone.remarks.join()).toContain('was cut');
    const next = await a.api.getCheckpoint(as('auditor'));
    const forged = await fileOf(next, checkpoint.revision + 3);
    expect((await verified(forged)).problem).toMatchObject({ fault: 'header' });
    const [first = archive, ...more] = archives;
    const other = Buffer.from(first.toString().replace('"after_revision":0', '"after_revision":1'));
    expect((await verified(other, ...more, rest)).ok).toBe(false);

    // A replica that starts now has never seen what was cut.
    const fresh = await startReplica({ url: pair.database.url });
    try {
      expect(await check(fresh.api, lease)).toMatchObject({ allowed: true });
    } finally {
      await fresh.stop();
    }
  });

  test('is told to whoever asks for what was cut', async () => {
    // The event that told when is in the archive: not known is not 1970.
    expect((await a.api.getNamespace(as('auditor'), { name: 'default' })).createdAt).toBeNull();
    const first = (await exported(0, Number.MAX_SAFE_INTEGER))[0]?.revision ?? 0;
    expect(first).toBeGreaterThan(1);
    const gone = { reason: 'CURSOR_EXPIRED', details: { metadata: { first_revision: String(first) } } };
    await expect(exported(1, 10)).rejects.toMatchObject(gone);
    await expect(a.api.getCheckpoint(as('auditor'), { at: { revision: 1 } })).rejects.toMatchObject(gone);
    const older = a.api.getCheckpoint(as('auditor'), { at: { before: 1 } });
    await expect(older).rejects.toMatchObject({ reason: 'INVALID_ARGUMENT' });
  });

  test('is cut at a checkpoint of its own only, neither at its head nor what is young', async () => {
    const before = await cuts();
    const head = await a.api.getCheckpoint(as('auditor'));
    const archive = await fileOf(head);
    await expect(cut(head, archive)).rejects.toMatchObject({ reason: 'INVALID_ARGUMENT' });
    await someEvents();
    await expect(cut(head, archive, false)).rejects.toMatchObject({ reason: 'LOG_TOO_YOUNG' });
    const forged = { ...head, revision: head.revision - 1 };
    await expect(cut(forged, archive)).rejects.toMatchObject({ reason: 'INVALID_ARGUMENT' });
    expect(await cuts()).toBe(before);
  });

  test('is cut once: the same call again only ends what was begun (kill -9 between record and removal)', async () => {
    const checkpoint = await a.api.getCheckpoint(as('auditor'));
    const archive = await fileOf(checkpoint);
    await someEvents();
    const { api, stop } = await startReplica({
      url: pair.database.url,
      wrap: (store) => ({ ...store, cutLog: () => Promise.reject(new Error('killed')) }),
    });
    const input = { checkpoint, archiveDigest: sha256(archive), evenYoung: true, reason: 'as said' };
    await expect(api.cutLog(as('admin'), input)).rejects.toThrow();
    await stop();
    // It is recorded, and nobody is shown what is still there.
    expect((await exported(0, Number.MAX_SAFE_INTEGER))[0]?.revision).toBe(checkpoint.revision + 1);
    const again = await cut(checkpoint, archive);
    expect(again.value.left).toBe(0);
    expect(again.value.removed).toBeGreaterThan(0);
    const rest = await fileOf(await a.api.getCheckpoint(as('auditor')));
    expect(rest.toString().match(/"kind":"log_cut"/g)).toHaveLength(1);
    expect(await verified(archive, rest)).toMatchObject({ ok: true });
  });

  test('is not cut by plain SQL, and by the function only as far as the log says', async () => {
    await expect(sql.query('DELETE FROM writ.event WHERE revision = 1')).rejects.toThrow('insert-only');
    const before = await sql.query('SELECT count(*) FROM writ.event');
    await sql.query(`SELECT writ.cut_log('default', 1000000)`);
    expect((await sql.query('SELECT count(*) FROM writ.event')).rows).toEqual(before.rows);
  });

  test('finds the last event before a time', async () => {
    const events = await exported(0, Number.MAX_SAFE_INTEGER);
    const middle = events[Math.floor(events.length / 2)];
    const before = middle?.time ?? 0;
    const expected = events.filter(({ time }) => time < before).at(-1)?.revision;
    expect((await a.api.getCheckpoint(as('auditor'), { at: { before } })).revision).toBe(expected);
    const later = await a.api.getCheckpoint(as('auditor'), { at: { before: (Date.now() + DAY_MS) * 1_000 } });
    expect(later.revision).toBe((await a.api.getCheckpoint(as('auditor'))).revision);
  });
});
