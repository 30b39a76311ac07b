import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { textDigest } from '../../src/engine/event-texts.js';
import { formatEvent, formatHeader } from '../../src/services/log-export.js';
import { type VerifyLogOptions, verifyLogs } from '../../src/services/verify-log.js';
import type { EventRecord } from '../../src/storage/store.js';
import { append, checkpointAt, publicPemOf, SAMPLE_KEYS } from '../support/sample-log.js';

// A2, F23: a log in several files, archives and the rest, is verified as one.

const publicKey = publicPemOf(SAMPLE_KEYS);

/** The file of the events after one revision, up to another. */
function part(events: readonly EventRecord[], after: number, upto = events.length): Buffer {
  const last = events[upto - 1];
  if (last === undefined) throw new Error('no events');
  const afterHash = events[after - 1]?.hash ?? null;
  const header = formatHeader({
    namespace: 'default',
    afterRevision: after,
    afterHash,
    checkpoint: checkpointAt(last),
  });
  return Buffer.from(`${[header, ...events.slice(after, upto).map(formatEvent)].join('\n')}\n`);
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

function recordCut(events: EventRecord[], upto: number, archive: Buffer): void {
  const { hash, revision, time } = checkpointAt(events[upto - 1] as EventRecord);
  const checkpoint = { hash, revision, time, keyId: 'k', signature: '' };
  const body = { archiveDigest: sha256(archive), checkpoint, firstRevision: upto + 1 };
  append(events, { kind: 'log_cut', body: JSON.stringify(body) });
}

function verify(files: readonly Buffer[], options: VerifyLogOptions = {}) {
  const chunks = files.map(async function* (bytes) {
    yield bytes;
  });
  return verifyLogs(chunks, { publicKey, ...options });
}

/** A log of so many events that was cut at these places, one after the other; with its archives and the rest. */
const cutLog = fc
  .record({
    size: fc.integer({ min: 4, max: 12 }),
    places: fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { maxLength: 3 }),
  })
  .map(({ size, places }) => {
    const events: EventRecord[] = [];
    for (let i = 0; i < size; i += 1) append(events);
    const archives: Buffer[] = [];
    let after = 0;
    for (const upto of places.filter((place) => place < size).sort((x, y) => x - y)) {
      const archive = part(events, after, upto);
      archives.push(archive);
      recordCut(events, upto, archive);
      after = upto;
    }
    append(events);
    return { events, archives, after, files: [...archives, part(events, after)] };
  });

describe('archives and the rest', () => {
  it('verify as the whole log does, wherever it was cut', async () => {
    await fc.assert(
      fc.asyncProperty(cutLog, async ({ events, files, after }) => {
        const whole = await verify([part(events, 0)]);
        const parts = await verify(files);
        expect(parts).toMatchObject({ ok: true, events: whole.events, firstRevision: 1, lastRevision: events.length });
        expect(parts.remarks).toEqual([]);
        expect(parts.checkpoint).toEqual(whole.checkpoint);
        // The rest alone begins where it says itself that it was cut.
        expect(await verify(files.slice(-1))).toMatchObject({ ok: true, firstRevision: after + 1 });
      }),
    );
  });

  it('are found out when one byte of any of them is another (F23)', async () => {
    await fc.assert(
      fc.asyncProperty(cutLog, fc.nat(), fc.nat(), async ({ files }, which, where) => {
        const index = which % files.length;
        const tampered = Buffer.from(files[index] as Buffer);
        const at = where % tampered.length;
        tampered[at] = (tampered[at] as number) ^ 1;
        const verdict = await verify(files.map((file, other) => (other === index ? tampered : file)));
        expect(verdict.ok).toBe(false);
      }),
      { numRuns: 200 },
    );
  });

  it('name the file of the first bad event', async () => {
    await fc.assert(
      fc.asyncProperty(cutLog, fc.nat(), async ({ events, archives, files }, which) => {
        const index = which % files.length;
        const lines = (files[index] as Buffer).toString().split('\n');
        fc.pre(lines.length > 3);
        lines.splice(1, 1);
        const removed = Buffer.from(lines.join('\n'));
        const { problem } = await verify(files.map((file, other) => (other === index ? removed : file)));
        const starts = [0, ...archives.map((_, i) => endOf(archives[i] as Buffer))];
        expect(problem).toMatchObject({ fault: 'removed', part: index, revision: (starts[index] ?? 0) + 1 });
        expect(events.length).toBeGreaterThan(0);
      }),
    );
  });

  it('are refused with one of them missing, twice, or in another order', async () => {
    const events: EventRecord[] = [];
    for (let i = 0; i < 9; i += 1) append(events);
    const [one, two, three] = [part(events, 0, 3), part(events, 3, 6), part(events, 6)];
    expect((await verify([one, two, three])).ok).toBe(true);
    for (const files of [
      [one, three],
      [one, one, two, three],
      [two, one, three],
      [two, three],
    ])
      expect((await verify(files)).problem).toMatchObject({ fault: 'header' });
    expect((await verify([two, three], { afterRevision: 3 })).ok).toBe(true);
  });

  it('must have the event of a checkpoint kept earlier, in whichever of them it is', async () => {
    const events: EventRecord[] = [];
    for (let i = 0; i < 9; i += 1) append(events);
    const files = [part(events, 0, 3), part(events, 3, 6), part(events, 6, 8)];
    for (const event of events.slice(0, 8)) expect((await verify(files, { kept: checkpointAt(event) })).ok).toBe(true);
    const beyond = checkpointAt(events[8] as EventRecord);
    expect((await verify(files, { kept: beyond })).problem).toMatchObject({ fault: 'cut_off', part: 2 });
    const other = { ...checkpointAt(events[4] as EventRecord), hash: 'f'.repeat(64) };
    expect((await verify(files, { kept: other })).problem).toMatchObject({ fault: 'rewritten', part: 1, revision: 5 });
  });

  it('begin nowhere but where the log says that it was cut', async () => {
    await fc.assert(
      fc.asyncProperty(cutLog, fc.integer({ min: 1, max: 12 }), async ({ events, after }, begin) => {
        fc.pre(begin !== after && begin < events.length);
        const cuts = events
          .slice(begin)
          .filter(({ kind, body }) => kind === 'log_cut' && JSON.parse(body).firstRevision === begin + 1);
        const verdict = await verify([part(events, begin)]);
        expect(verdict.ok).toBe(cuts.length > 0);
      }),
    );
  });

  it('say it when an archive is not the one that was recorded, though its events are', async () => {
    const events: EventRecord[] = [];
    for (let i = 0; i < 4; i += 1) append(events);
    recordCut(events, 2, Buffer.from('another file'));
    const verdict = await verify([part(events, 0, 2), part(events, 2)]);
    expect(verdict).toMatchObject({ ok: true, remarks: [expect.stringContaining('not byte for byte')] });
  });
});

describe('texts that are not there', () => {
  const salt = '0'.repeat(32);
  const withText = (runId: string, kept: boolean): Partial<EventRecord> => {
    const digest = textDigest(salt, 'why');
    const body = JSON.stringify({ reason: { sha256: digest } });
    return { runId, bodyVersion: 2, body, texts: kept ? [{ digest, salt, text: 'why' }] : [] };
  };
  const remarksOf = async (...events: Partial<EventRecord>[]): Promise<string> => {
    const log: EventRecord[] = [];
    for (const event of events) append(log, event);
    return (await verify([part(log, 0)])).remarks.join('\n');
  };

  it('are told apart: erased by an event, old enough for retention, and neither', async () => {
    expect(await remarksOf(withText('a', true), withText('b', true))).toBe('');
    const old = await remarksOf(withText('a', false), withText('b', true));
    expect(old).toContain('1 events are without their free text');
    expect(old).not.toContain('neither');
    const erased = await remarksOf(withText('a', true), withText('b', false), { kind: 'texts_erased', runId: 'b' });
    expect(erased).toContain('of 1 an event says');
    expect(erased).not.toContain('neither');
    const left = await remarksOf(withText('a', true), withText('b', false), { kind: 'texts_erased', runId: 'c' });
    expect(left).toContain('the first at revision 2, are missing for neither reason');
  });
});

/** The last revision of a file. */
function endOf(bytes: Buffer): number {
  return Number(/"revision":(\d+),"signature"/.exec(bytes.toString())?.[1] ?? 0);
}
