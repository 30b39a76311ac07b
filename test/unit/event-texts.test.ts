import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideIssueCredentials } from '../../src/domain/decide/issue-credentials.js';
import type { DomainEvent, EventBody } from '../../src/domain/event.js';
import { toRecords } from '../../src/engine/batch.js';
import { BODY_VERSION, decodeEvent } from '../../src/engine/event-codec.js';
import { ERASED, textDigest } from '../../src/engine/event-texts.js';
import { GENESIS_HASH, hashEvent } from '../../src/engine/hash-chain.js';
import type { EventRecord } from '../../src/storage/store.js';
import { leased, Namespace } from '../support/domain.js';

const HEAD = { revision: 0, hash: GENESIS_HASH, time: 0 };

const rowOf = (body: EventBody, salt?: () => string): EventRecord => {
  const event: DomainEvent = { time: 1, actor: 'a', runId: 'r', leaseId: '', resources: [], requestIds: [], body };
  return toRecords('ns', 'batch', HEAD, [event], salt)[0] as EventRecord;
};

const stopped = (reason: string): EventBody => ({
  kind: 'run_state_changed',
  runId: 'r',
  state: 'stopped',
  reason,
  blockCause: null,
  endedAt: 1,
  endsAs: null,
});

describe('free text of events (A3)', () => {
  it('never stands in the log, whatever it is, and comes back from beside it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }), (words) => {
        const reason = `secret ${words}`;
        const row = rowOf(stopped(reason));
        expect(row.body).not.toContain('secret');
        expect(row.bodyVersion).toBe(BODY_VERSION.withoutText);
        expect(row.texts).toHaveLength(1);
        expect(decodeEvent(row).body).toEqual(stopped(reason));
      }),
    );
  });

  it('is proven by the hash in the body, which the chain covers', () => {
    const row = rowOf(stopped('asked for by Ada'));
    const [kept] = row.texts;
    expect(JSON.parse(row.body)).toMatchObject({ reason: { sha256: kept?.digest } });
    expect(textDigest(kept?.salt ?? '', 'asked for by Ada')).toBe(kept?.digest);
    expect(hashEvent(row)).toBe(row.hash);
  });

  it('leaves a log that is as whole without it, and says that it was erased', () => {
    const row = { ...rowOf(stopped('asked for by Ada')), texts: [] };
    expect(hashEvent(row)).toBe(row.hash);
    expect(decodeEvent(row).body).toMatchObject({ reason: ERASED, state: 'stopped' });
  });

  it('cannot be guessed from the log: equal texts have different hashes', () => {
    const [one, other] = [rowOf(stopped('yes')), rowOf(stopped('yes'))];
    expect(one.texts[0]?.digest).not.toBe(other.texts[0]?.digest);
    expect(one.texts[0]?.salt).toMatch(/^[0-9a-f]{32}$/);
    expect(other.texts[0]?.salt).not.toBe(one.texts[0]?.salt);
  });

  it('is looked for where people and agents write it, and nowhere else', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('doc/x'));
    ns.stop('a');
    ns.hold('b', leased('doc/y'));
    ns.advance(10_000_000_000);
    ns.sweep();
    const rows = toRecords('ns', 'batch', HEAD, ns.events);
    const withText = rows.filter((row) => row.texts.length > 0).map((row) => row.kind);
    expect(new Set(withText)).toEqual(new Set(['conflict_map_put', 'run_created', 'run_state_changed', 'lease_ended']));
    // Ends by time tell no more than their kind; a text for each would be a row for each of 100,000 expiring leases.
    const ends = rows.filter((row) => row.kind === 'lease_ended');
    expect(ends.map((row) => [row.leaseId === lease.leaseId, row.texts.length])).toEqual([
      [true, 1],
      [false, 0],
    ]);
  });

  it('is found with the run that it is about alone: what others and later refusals say of it only points there', () => {
    const ns = new Namespace();
    ns.run('parent', { principal: 'p' });
    ns.run('child', { principal: 'p', parentRunId: 'parent' });
    ns.run('blocked', { principal: 'p' });
    ns.run('other');
    const held = ns.hold('other', leased('doc/x'));
    ns.hold('child', leased('doc/y'));
    const waiting = ns.queue('blocked', leased('doc/x'));
    ns.update('blocked', 'blocked', { reason: 'Ada said so' });
    ns.stop('parent', 'Ada said so');
    ns.release(held);
    expect(ns.lease(waiting).endRefusal?.message).toBe('The run is blocked; `writ run get blocked` tells why.');
    for (const runId of ['parent', 'blocked'])
      expect(ns.refused(ns.acquire(runId, [leased('doc/z')])).message).toContain('Ada said so');
    const issued = ns.decide((decision) =>
      decideIssueCredentials(decision, {
        principal: 'p',
        runId: 'parent',
        leaseId: null,
        wanted: [{ audience: 'svc', jti: 'j' }],
        boundTo: null,
        maxClockSkew: 0,
        requestIds: [],
      }),
    );
    expect(issued).toMatchObject([{ refusal: { message: 'The run is stopped: Ada said so.' } }]);
    const rows = toRecords('ns', 'batch', HEAD, ns.events);
    expect(rows.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['acquire_refused', 'credentials_refused']));
    expect(rows.filter(({ body }) => body.includes('Ada'))).toEqual([]);
    const told = rows.filter(({ texts }) => texts.some(({ text }) => text.includes('Ada')));
    expect(new Set(told.map(({ runId }) => runId))).toEqual(new Set(['parent', 'blocked']));
  });

  it('stands in its place in an empty text and in rows of older versions', () => {
    expect(rowOf(stopped(''))).toMatchObject({ bodyVersion: BODY_VERSION.plain, texts: [] });
    const old = { ...rowOf(stopped('')), body: JSON.stringify({ ...stopped('in full'), kind: undefined }) };
    expect(decodeEvent(old).body).toMatchObject({ reason: 'in full' });
  });
});
