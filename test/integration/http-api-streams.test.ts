import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { bytesOf } from '../../src/cli/commands/audit-export.js';
import { verifyLogs } from '../../src/services/verify-log.js';
import { as, createRun, eventually, putMap } from '../support/coordinator.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { type ServedApi, startServedApi } from '../support/served-api.js';

/** Answers that go on: the log and the fences as server-sent events, and the log as a file. */

let api: ServedApi;

beforeAll(async () => {
  api = await startServedApi();
});

afterAll(() => api.stop());

interface Told {
  readonly id: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever is told; tests say what they expect.
  readonly data: any;
}

/** A reader of server-sent events, as the standard has it. */
class Reader {
  readonly told: Told[] = [];
  lastId = '';
  isOver = false;
  readonly #aborter = new AbortController();

  async open(path: string, role: string, headers: Record<string, string> = {}): Promise<Response> {
    const response = await fetch(`${api.url}/v1${path}`, {
      headers: { authorization: `Bearer token-${role}`, ...headers },
      signal: this.#aborter.signal,
    });
    if (response.ok) this.#read(response).catch(() => undefined);
    return response;
  }

  close(): void {
    this.#aborter.abort();
  }

  async #read(response: Response): Promise<void> {
    let text = '';
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) this.#take(block);
    }
    this.isOver = true;
  }

  #take(block: string): void {
    const fieldOf = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
    this.lastId = fieldOf('id') ?? this.lastId;
    const data = fieldOf('data');
    if (data === undefined) return;
    this.told.push({ id: this.lastId, event: fieldOf('event') ?? 'message', data: JSON.parse(data) });
  }
}

const readers: Reader[] = [];

async function opened(path: string, role: string, headers: Record<string, string> = {}): Promise<Reader> {
  const reader = new Reader();
  readers.push(reader);
  // A replica that the machine gave no time for a while says so, and is asked again.
  const response = await eventually(
    () => reader.open(path, role, headers),
    ({ status }) => status !== 503,
  );
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  return reader;
}

afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});

const happen = (): Promise<string> => createRun(api.replica.api);
/** What the log says, beside the event's revision, of where a reader has got to. */
const revisionOf = (id: string): number => Number(id.split(':')[0]);
const head = async (): Promise<number> => {
  const ask = () => api.ask('auditor', 'GET /checkpoint');
  return Number((await eventually(ask, ({ status }) => status !== 503)).json.checkpoint.revision);
};

describe('the log as it grows', () => {
  it('is told from the head on, event by event', async () => {
    await happen();
    const before = await head();
    const reader = await opened('/events/stream', 'auditor');
    await expect.poll(() => revisionOf(reader.lastId)).toBe(before);
    const runId = await happen();
    await expect.poll(() => reader.told.length).toBe(1);
    const [told] = reader.told;
    expect(told).toMatchObject({
      event: 'message',
      data: { kind: 'run_created', runId, revision: String(before + 1) },
    });
    expect(told?.id).toBe(`${before + 1}:${Buffer.from(told?.data.hash, 'base64').toString('hex')}`);
  });

  it('goes on where a reader was, without a gap, by Last-Event-ID or a revision', async () => {
    const before = await head();
    for (let count = 0; count < 150; count += 1) await happen();
    const expected = Array.from({ length: 150 }, (_, index) => before + 1 + index);
    const byId = await opened('/events/stream?after_revision=1', 'operator', { 'last-event-id': String(before) });
    const byRevision = await opened(`/events/stream?after_revision=${before}`, 'admin');
    for (const reader of [byId, byRevision]) {
      await expect.poll(() => reader.told.length).toBe(150);
      expect(reader.told.map(({ id }) => revisionOf(id))).toEqual(expected);
    }
    const last = await opened('/events/stream', 'operator', { 'last-event-id': byId.told[148]?.id ?? '' });
    await expect.poll(() => last.told.map(({ id }) => id)).toEqual([byId.lastId]);
    const prev = byId.told.slice(0, -1).map(({ data }) => data.hash);
    expect(byId.told.slice(1).map(({ data }) => data.prevHash)).toEqual(prev);
  });

  it('refuses a place that the log does not have', async () => {
    const ask = (id: string) => api.ask('auditor', 'GET /events/stream', { headers: { 'last-event-id': id } });
    const ahead = await ask(String((await head()) + 1_000));
    expect([ahead.status, ahead.json.reason]).toEqual([409, 'HISTORY_FORKED']);
    // A history that was lost, and another one that has got further since (F13).
    const reader = await opened(`/events/stream?after_revision=${(await head()) - 1}`, 'auditor');
    await expect.poll(() => reader.told.length).toBe(1);
    await happen();
    const forged = await ask(reader.lastId.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')));
    expect([forged.status, forged.json.reason]).toEqual([409, 'HISTORY_FORKED']);
    for (const id of ['x', '-1', '1:2', '9'.repeat(30)]) {
      const { status, json } = await ask(id);
      expect([status, json.violations[0].field], id).toEqual([400, 'Last-Event-ID']);
    }
  });

  it('ends for a caller whose token was revoked, and says why', async () => {
    const reader = await opened('/events/stream', 'admin');
    await expect.poll(() => reader.lastId).not.toBe('');
    const { giveBack } = api.revoke('admin');
    onTestFinished(giveBack);
    await expect.poll(() => reader.isOver).toBe(true);
    expect(reader.told.at(-1)).toMatchObject({ event: 'problem', data: { status: 401, reason: 'UNAUTHENTICATED' } });
  });

  it('keeps nothing of readers that have gone, and bounds how many there are of one principal', async () => {
    const head = await fetch(`${api.url}/v1/events/stream`, {
      method: 'HEAD',
      headers: { authorization: 'Bearer token-operator' },
    });
    expect(head.status).toBe(200);
    // Those of the tests before.
    await expect.poll(openStreams).toBe(0);
    const open = () => opened('/events/stream', 'operator');
    for (let count = 0; count < 64; count += 1) await open();
    const refused = await api.ask('operator', 'GET /events/stream');
    expect([refused.status, refused.json.reason]).toEqual([429, 'WATCH_LIMIT']);
    expect(refused.json.detail).toContain('64 streams of the log of yours');
    for (const reader of readers.splice(0)) reader.close();
    await expect.poll(openStreams).toBe(0);
    await open();
  });

  it('lets go of a reader that does not read, while nothing piles up for it', { timeout: 120_000 }, async () => {
    await expect.poll(openStreams).toBe(0);
    const from = await head();
    const { value: map } = await api.replica.api.getConflictMap(as('admin'), { version: 0 });
    const first = map?.version ?? 0;
    // More than the sockets between hold.
    for (let version = first; version < first + 16; version += 1)
      await putMap(api.replica.api, largeMap(version), version);
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(
      `GET /v1/events/stream?after_revision=${from} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-auditor\r\n\r\n`,
    );
    await expect.poll(openStreams).toBe(1);
    await happen();
    await expect.poll(openStreams).toBe(0);
    socket.destroy();
    // And goes on where it was.
    const reader = await opened('/events/stream', 'auditor', { 'last-event-id': String(from) });
    await expect.poll(() => reader.told.length).toBeGreaterThan(16);
    expect(revisionOf(reader.told[0]?.id ?? '')).toBe(from + 1);
  });
});

describe('a page of the log', () => {
  it('has every event in order, also one that is long', async () => {
    for (let count = 0; count < 70; count += 1) await happen();
    const to = await head();
    const page = await api.ask('auditor', `GET /events?after_revision=${to - 70}&page_size=1000`);
    expect(page.json.events.map(({ revision }: { revision: string }) => Number(revision))).toEqual(
      Array.from({ length: 70 }, (_, index) => to - 69 + index),
    );
    const { events } = await api.client('auditor').audit.listEvents({ afterRevision: BigInt(to - 70) });
    expect(page.json.events.map(({ hash }: { hash: string }) => hash)).toEqual(
      events.map(({ hash }) => Buffer.from(hash).toString('base64')),
    );
    expect(page.json).toMatchObject({ nextPageToken: '', firstRevision: '1' });
  });
});

const largeMap = (version: number): string => `version: 1\n# ${version}\n${`# ${'x'.repeat(998)}\n`.repeat(1_000)}`;

async function openStreams(): Promise<number> {
  const { text } = await api.metrics.render();
  return Number(/^writ_http_streams_open (\d+)$/m.exec(text)?.[1]);
}

describe('the fences as they change', () => {
  it('begin with a snapshot, and go on from what was reached', async () => {
    const reader = await opened('/fence/changes', 'target');
    await expect.poll(() => reader.lastId).toMatch(/^\d+:[0-9a-f]{64}$/);
    expect(reader.told[0]?.data).toHaveProperty('snapshot');
    const { lastId } = reader;
    reader.close();
    const again = await opened('/fence/changes', 'target', { 'last-event-id': lastId });
    await happen();
    await expect.poll(() => again.told.map(({ data }) => Object.keys(data)[0])).toContain('reached');
    expect(again.told.map(({ data }) => Object.keys(data)[0])).not.toContain('snapshot');
    const forged = lastId.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
    const forked = await api.ask('target', 'GET /fence/changes', { headers: { 'last-event-id': forged } });
    expect([forked.status, forked.json.reason]).toEqual([409, 'HISTORY_FORKED']);
    expect((await api.ask('target', 'GET /fence/changes?view_kinds_only=maybe')).status).toBe(400);
  });
});

describe('marks among the fences', () => {
  it('come by themselves, and say when all had been told', async () => {
    const reader = await opened('/fence/changes', 'target');
    const marks = () => reader.told.flatMap(({ data, id }) => (data.mark === undefined ? [] : [{ ...data.mark, id }]));
    await expect.poll(() => marks().length, { timeout: 20_000 }).toBeGreaterThan(1);
    const [first, second] = marks();
    expect(Date.parse(second.databaseTime)).toBeGreaterThan(Date.parse(first.databaseTime));
    expect(second.id).toBe(`${second.position.revision}:${second.position.hash}`);
  });
});

describe('the log as a file', () => {
  const download = async (query = ''): Promise<string> => {
    const response = await fetch(`${api.url}/v1/events/export${query}`, {
      headers: { authorization: 'Bearer token-auditor' },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="default-\d+-\d+\.ndjson"$/);
    return response.text();
  };

  it('verifies offline, whole and in part', async () => {
    const directory = await makeTestDirectory('http-export');
    const file = join(directory, 'audit.ndjson');
    await writeFile(file, await download());
    expect(await verifyLogs([bytesOf(file)], {})).toMatchObject({
      ok: true,
      firstRevision: 1,
      lastRevision: await head(),
    });
    await writeFile(file, await download('?after_revision=5'));
    expect(await verifyLogs([bytesOf(file)], { afterRevision: 5 })).toMatchObject({ ok: true, firstRevision: 6 });
    const last = await head();
    expect((await download(`?after_revision=${last}`)).trim().split('\n')).toHaveLength(1);
    const beyond = await api.ask('auditor', `GET /events/export?after_revision=${last + 1}`);
    expect([beyond.status, beyond.json.violations[0].field]).toEqual([400, 'after_revision']);
  });
});

describe('a coordinator that stops', () => {
  it('says so on its streams, and does not wait for them', async () => {
    const own = await startServedApi();
    try {
      const response = await fetch(`${own.url}/v1/events/stream`, {
        headers: { authorization: 'Bearer token-auditor' },
      });
      const text = response.text();
      const began = performance.now();
      await own.stopHttp(20_000);
      expect(await text).toMatch(/\nevent: problem\ndata: .*"SHUTTING_DOWN"/);
      expect(performance.now() - began).toBeLessThan(10_000);
    } finally {
      await own.stop();
    }
  });
});
