import { Buffer } from 'node:buffer';
import { createHash, generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { textDigest } from '../../src/engine/event-texts.js';
import { hashEvent } from '../../src/engine/hash-chain.js';
import type { Checkpoint } from '../../src/services/api.js';
import { formatEvent, formatHeader } from '../../src/services/log-export.js';
import { type LogVerdict, type VerifyLogOptions, verifyLog } from '../../src/services/verify-log.js';
import type { EventRecord } from '../../src/storage/store.js';
import { append, checkpointAt, publicPemOf, SAMPLE_KEYS } from '../support/sample-log.js';

// F23: exports with a changed, removed, inserted, swapped or cut-off event; honest logs never alarm.

const publicKeyPem = publicPemOf(SAMPLE_KEYS);

function chain(contents: readonly Partial<EventRecord>[]): EventRecord[] {
  const events: EventRecord[] = [];
  for (const content of contents) append(events, content);
  return events;
}

function checkpointOf(events: readonly EventRecord[], keys = SAMPLE_KEYS): Checkpoint {
  const last = events.at(-1);
  if (last === undefined) throw new Error('no events');
  return checkpointAt(last, keys);
}

/** A file of these lines over that log's checkpoint. */
function file(
  events: readonly EventRecord[],
  checkpoint: Checkpoint,
  afterRevision = 0,
  afterHash: string | null = null,
): Buffer {
  const lines = [
    formatHeader({ namespace: 'default', afterRevision, afterHash, checkpoint }),
    ...events.map(formatEvent),
  ];
  return Buffer.from(`${lines.join('\n')}\n`);
}

async function verify(bytes: Buffer, options: VerifyLogOptions = {}, chunkSize = 97): Promise<LogVerdict> {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += chunkSize) yield bytes.subarray(at, at + chunkSize);
  }
  return verifyLog(chunks(), { publicKey: publicKeyPem, ...options });
}

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const content = fc.record({
  time: fc.integer({ min: 0, max: 2 ** 52 }),
  kind: text,
  actor: text,
  runId: text,
  leaseId: text,
  resources: fc.array(text, { maxLength: 3 }),
  requestIds: fc.array(text, { maxLength: 3 }),
  body: text,
});
const log = fc.array(content, { minLength: 2, maxLength: 12 }).map(chain);
/** A log and two different places in it. */
const logAndPlaces = log.chain((events) =>
  fc
    .uniqueArray(fc.nat(events.length - 1), { minLength: 2, maxLength: 2 })
    .map(([a = 0, b = 1]) => ({ events, i: Math.min(a, b), j: Math.max(a, b) })),
);
const RUNS = { numRuns: 60 };

describe('verifyLog', () => {
  it('finds nothing wrong with an honest log, however it is cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(log, fc.integer({ min: 1, max: 5_000 }), async (events, chunkSize) => {
        const verdict = await verify(file(events, checkpointOf(events)), {}, chunkSize);
        expect(verdict.problem).toBeNull();
        expect(verdict).toMatchObject({
          ok: true,
          events: events.length,
          firstRevision: 1,
          lastRevision: events.length,
        });
      }),
      RUNS,
    );
  });

  it('finds nothing wrong with an honest part of a log, if a part is what is expected', async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ({ events, j }) => {
        const part = file(events.slice(j), checkpointOf(events), j);
        expect(await verify(part, { afterRevision: j })).toMatchObject({ ok: true, firstRevision: j + 1 });
        if (j > 0) expect((await verify(part)).problem).toMatchObject({ fault: 'header' });
      }),
      RUNS,
    );
  });

  const COLUMNS = [
    'namespace',
    'revision',
    'time',
    'batchId',
    'kind',
    'bodyVersion',
    'actor',
    'runId',
    'leaseId',
    'resources',
    'requestIds',
    'body',
    'prevHash',
    'hash',
  ] as const;

  it.each(COLUMNS)('names the event whose %s was changed', async (column) => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, fc.nat({ max: 30 }), async ({ events, i }, by) => {
        const checkpoint = checkpointOf(events);
        const tampered = events.map((e, at) => (at === i ? { ...e, [column]: another(e[column], by) } : e));
        const { problem } = await verify(file(tampered, checkpoint));
        expect(problem).toMatchObject({ fault: 'changed', revision: i + 1, line: i + 2 });
      }),
      RUNS,
    );
  });

  it('names the event that was changed and hashed anew', async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, text, async ({ events, i }, addition) => {
        const tampered = events.map((e, at) => (at === i ? rehashed({ ...e, body: `${e.body}${addition}x` }) : e));
        const { problem } = await verify(file(tampered, checkpointOf(events)));
        expect(problem).toMatchObject({ fault: i === events.length - 1 ? 'rewritten' : 'changed', revision: i + 1 });
      }),
      RUNS,
    );
  });

  it('finds that everything from an event to the end was hashed anew', async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ({ events, i }) => {
        const forged = chain(events.map((e, at) => (at === i ? { ...e, body: `${e.body}x` } : e)));
        const { problem } = await verify(file(forged, checkpointOf(events)));
        expect(problem).toMatchObject({ fault: 'rewritten', revision: events.length });
      }),
      RUNS,
    );
  });

  it('names the event that was removed, or the end that was cut off', async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, fc.boolean(), async ({ events, i, j }, last) => {
        const at = last ? events.length - 1 : i;
        const { problem } = await verify(file(events.toSpliced(at, 1), checkpointOf(events)));
        expect(problem).toMatchObject({
          fault: at === events.length - 1 ? 'cut_off' : 'removed',
          revision: at + 1,
          line: at + 2,
        });
        const range = await verify(file(events.toSpliced(i, j - i), checkpointOf(events)));
        expect(range.problem).toMatchObject({ fault: 'removed', revision: i + 1 });
      }),
      RUNS,
    );
  });

  it('names the event that was removed when those after it were renumbered', async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ({ events, i }) => {
        const tampered = events.toSpliced(i, 1).map((e, at) => ({ ...e, revision: at + 1 }));
        const { problem } = await verify(file(tampered, checkpointOf(events)));
        expect(problem).toMatchObject({ fault: i === events.length - 1 ? 'cut_off' : 'removed', revision: i + 1 });
      }),
      RUNS,
    );
  });

  it('names the place of an event that was inserted', async () => {
    await fc.assert(
      fc.asyncProperty(
        logAndPlaces,
        content,
        fc.constantFrom('garbage', 'forged', 'copy', 'copy of a later one', 'renumbered'),
        async ({ events, i, j }, more, how) => {
          const checkpoint = checkpointOf(events);
          const forged = rehashed({ ...must(events[i]), ...more, body: `${more.body}forged` });
          const inserted = {
            garbage: events.toSpliced(i, 0, { ...forged, hash: 'ab'.repeat(32) }),
            forged: events.toSpliced(i, 0, forged),
            copy: events.toSpliced(i, 0, must(events[i])),
            'copy of a later one': events.toSpliced(i, 0, must(events[j])),
            renumbered: events.toSpliced(i, 0, forged).map((e, at) => (at > i ? { ...e, revision: at + 1 } : e)),
          }[how];
          const { problem } = await verify(file(inserted, checkpoint));
          expect(problem).toMatchObject({ fault: 'inserted', revision: i + 1 });
        },
      ),
      { numRuns: 200 },
    );
  });

  it('does not vouch for events after the checkpoint', async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ({ events, j }) => {
        const { problem } = await verify(file(events, checkpointOf(events.slice(0, j))));
        expect(problem).toMatchObject({ fault: 'inserted', revision: j + 1, line: j + 2 });
      }),
      RUNS,
    );
  });

  it('names the first of two events that were swapped', async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ({ events, i, j }) => {
        const swapped = events.with(i, must(events[j])).with(j, must(events[i]));
        const { problem } = await verify(file(swapped, checkpointOf(events)));
        expect(problem).toMatchObject({ fault: 'reordered', revision: i + 1, line: i + 2 });
      }),
      RUNS,
    );
  });

  it('finds a free text, a salt or a digest that was changed, and takes texts that are gone for erased (A3)', async () => {
    const salt = '5a'.repeat(16);
    const digest = textDigest(salt, 'Ada asked');
    const texts = [{ digest, salt, text: 'Ada asked' }];
    const events = chain([{}, { body: `{"reason":{"sha256":"${digest}"}}`, bodyVersion: 2, texts }, {}]);
    const with_ = (changed: EventRecord['texts']) =>
      verify(file(events.with(1, { ...must(events[1]), texts: changed }), checkpointOf(events)));
    expect((await with_(texts)).ok).toBe(true);
    expect((await with_([])).ok).toBe(true);
    for (const changed of [
      [{ digest, salt, text: 'Eve asked' }],
      [{ digest, salt: '5b'.repeat(16), text: 'Ada asked' }],
      // True in itself, but not a text of this event.
      [{ digest: textDigest(salt, 'Eve asked'), salt, text: 'Eve asked' }],
      [...texts, { digest: textDigest(salt, 'more'), salt, text: 'more' }],
    ]) {
      expect((await with_(changed)).problem).toMatchObject({ fault: 'changed', revision: 2, line: 3 });
    }
  });

  it('finds a file cut off at any byte', async () => {
    const events = chain([{ body: '{"a":"ü"}' }, {}, {}]);
    const bytes = file(events, checkpointOf(events));
    const headerEnd = bytes.indexOf(0x0a);
    // The last one is the line feed of the last event: without it nobody knows whether more was to come.
    for (let length = 0; length < bytes.length; length += 1) {
      const { problem } = await verify(bytes.subarray(0, length));
      const linesBefore = bytes.subarray(0, length).toString().split('\n').length - 1;
      expect([length, problem?.fault, problem?.revision]).toEqual([
        length,
        length < headerEnd ? 'header' : 'cut_off',
        linesBefore === 0 ? null : linesBefore,
      ]);
    }
  });

  it('knows by a checkpoint kept elsewhere that an older or rewritten export is not the log', async () => {
    const events = chain([{}, {}, {}]);
    const kept = checkpointOf(events.slice(0, 2));
    expect((await verify(file(events, checkpointOf(events)), { kept })).ok).toBe(true);
    expect((await verify(file(events.slice(0, 2), kept), { kept })).ok).toBe(true);
    const older = file(events.slice(0, 1), checkpointOf(events.slice(0, 1)));
    expect((await verify(older)).ok).toBe(true);
    expect((await verify(older, { kept })).problem).toMatchObject({ fault: 'cut_off', revision: 2, line: 1 });
    // Whoever has the signing key can rewrite everything but what others have kept.
    const rewritten = chain([{ body: '{"a":1}' }, {}, {}]);
    expect((await verify(file(rewritten, checkpointOf(rewritten)))).ok).toBe(true);
    expect((await verify(file(rewritten, checkpointOf(rewritten)), { kept })).problem).toMatchObject({
      fault: 'rewritten',
      revision: 2,
      line: 3,
    });
    const part = file(events.slice(2), checkpointOf(events), 2);
    expect((await verify(part, { kept, afterRevision: 2 })).problem).toMatchObject({ fault: 'header' });
  });

  it('cannot know by itself that an older export, whole in itself, is not the newest', async () => {
    const events = chain([{}, {}, {}]);
    const older = file(events.slice(0, 2), checkpointOf(events.slice(0, 2)));
    expect(await verify(older)).toMatchObject({ ok: true, lastRevision: 2 });
    // The end of the events without the checkpoint over it, or the reverse, is seen.
    expect((await verify(file(events.slice(0, 2), checkpointOf(events)))).problem).toMatchObject({
      fault: 'cut_off',
      revision: 3,
    });
  });

  it('finds any one changed byte', async () => {
    const events = chain([{ body: '{"a":"ü \u{fffd}"}' }, { requestIds: ['r-1'] }, {}]);
    const bytes = file(events, checkpointOf(events));
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, difference) => {
        const changed = Buffer.from(bytes);
        changed[at] = must(bytes[at]) ^ difference;
        expect((await verify(changed)).ok).toBe(false);
        // Whoever takes the key from the file has less, but not nothing.
        expect((await verifyLog(single(changed))).ok).toBe(false);
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ['another spelling of the same JSON', (line: string) => line.replace('{"actor"', '{ "actor"')],
    ['a key given twice', (line: string) => line.replace('{"actor"', '{"actor":"somebody else","actor"')],
    ['an unknown key', (line: string) => line.replace('}', ',"zzz":1}')],
    ['a number as text', (line: string) => line.replace('"revision":2', '"revision":"2"')],
    ['another escape', (line: string) => line.replace('svc:', 'svc\\u003a')],
  ])('does not take %s', async (_name, change) => {
    const events = chain([{}, {}, {}]);
    const lines = file(events, checkpointOf(events)).toString().split('\n');
    lines[2] = change(must(lines[2]));
    const { problem } = await verify(Buffer.from(lines.join('\n')));
    expect(problem).toMatchObject({ fault: 'changed', revision: 2, line: 3 });
  });

  it('does not take a checkpoint that somebody else signed', async () => {
    const events = chain([{}, {}]);
    const forged = file(events, checkpointOf(events, generateKeyPairSync('ed25519')));
    expect((await verify(forged)).problem).toMatchObject({ fault: 'key', revision: null });
    // Without a key from elsewhere it fits itself; the verdict says whose word that is.
    expect(await verifyLog(single(forged))).toMatchObject({ ok: true, keyGiven: false });
    const { signature } = checkpointOf(events, generateKeyPairSync('ed25519'));
    const swapped = { ...checkpointOf(events), signature };
    expect((await verify(file(events, swapped))).problem).toMatchObject({ fault: 'signature' });
  });

  it.each(['', 'hello\n', '{}\n', '\n\n', 'null'])('says that %j is no export', async (content) => {
    expect((await verify(Buffer.from(content))).problem).toMatchObject({ fault: 'header', revision: null });
  });

  it('reads a line without end in bounded memory', async () => {
    const events = chain([{}]);
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield file(events, checkpointOf(events));
      for (;;) yield Buffer.alloc(1 << 20, 0x61);
    }
    expect((await verifyLog(endless())).problem).toMatchObject({ fault: 'changed', revision: 2 });
  });
});

function another(value: unknown, by: number): unknown {
  if (typeof value === 'number') return value + 1 + by;
  if (Array.isArray(value)) return [...value, `more${by}`];
  const string = String(value);
  if (/^[0-9a-f]{64}$/.test(string)) return createHash('sha256').update(`${string}${by}`).digest('hex');
  return `${string}${by}`;
}

function rehashed(event: EventRecord): EventRecord {
  return { ...event, hash: hashEvent(event) };
}

async function* single(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('out of range');
  return value;
}
