import { generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LogEvent } from '../../src/console/api/shapes.js';
import { ChainVerifier, canonicalForm, verifyCheckpoint } from '../../src/console/pure/chain.js';
import { bodyOf } from '../../src/console/pure/event-body.js';
import { EVENT_KINDS, lineOf } from '../../src/console/pure/event-words.js';
import { found, guideRows, reasonCodes } from '../../src/console/pure/reason-codes.js';
import { refusalsByReason } from '../../src/console/pure/refusals.js';
import { lastVersionOf, tokensOf } from '../../src/console/pure/resource-history.js';
import { canonicalForm as engineForm, GENESIS_HASH, type HashedEvent, hashEvent } from '../../src/engine/hash-chain.js';
import { fileCheckpointSigner } from '../../src/services/checkpoint-signer.js';
import { makeTestDirectory } from '../support/global-setup.js';

const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64');

const moment = (micros: number): string =>
  `${new Date(Math.floor(micros / 1_000_000) * 1_000).toISOString().slice(0, 19)}.${String(micros % 1_000_000).padStart(6, '0')}Z`;

/** As the HTTP API tells it. */
const told = (event: HashedEvent, hash: string): LogEvent => ({
  namespace: event.namespace,
  revision: String(event.revision),
  time: moment(event.time),
  kind: event.kind,
  actor: event.actor,
  runId: event.runId,
  leaseId: event.leaseId,
  resources: event.resources,
  body: event.body,
  bodyVersion: event.bodyVersion,
  batchId: event.batchId,
  prevHash: base64(event.prevHash),
  hash: base64(hash),
  requestIds: event.requestIds,
});

function log(count: number): LogEvent[] {
  const events: LogEvent[] = [];
  let before = GENESIS_HASH;
  for (let revision = 1; revision <= count; revision += 1) {
    const event: HashedEvent = {
      namespace: 'default',
      revision,
      time: 1_796_119_200_000_000 + revision * 7,
      batchId: 'b',
      kind: 'lease_granted',
      bodyVersion: 2,
      actor: 'agent “ü” 👍',
      runId: '',
      leaseId: '',
      resources: ['a/b', 'c\u2028d'],
      requestIds: [],
      body: '{"x":"\\u0001"}',
      prevHash: before,
    };
    before = hashEvent(event);
    events.push(told(event, before));
  }
  return events;
}

async function verify(events: readonly LogEvent[], begins = 1) {
  const verifier = new ChainVerifier('default');
  for (const event of events) await verifier.take(event);
  return verifier.verdict(begins);
}

describe('the chain, verified in the browser', () => {
  it('is hashed over the form that the engine hashes', () => {
    const text = fc.string({ unit: 'grapheme' });
    const event = fc.record({
      namespace: text,
      revision: fc.nat(),
      time: fc.integer({ min: 0, max: 4_000_000_000_000_000 }),
      batchId: text,
      kind: text,
      bodyVersion: fc.nat(),
      actor: text,
      runId: text,
      leaseId: text,
      resources: fc.array(text),
      requestIds: fc.array(text),
      body: text,
      prevHash: fc.constant(GENESIS_HASH),
    });
    fc.assert(
      fc.property(event, (one) => {
        expect(canonicalForm(told(one, GENESIS_HASH))).toBe(engineForm(one));
      }),
    );
  });

  it('is whole, from the first event or from a later one on', async () => {
    const events = log(5);
    expect(await verify(events)).toMatchObject({ ok: true, events: 5, first: 1, last: 5 });
    expect(await verify(events.slice(2), 3)).toMatchObject({ ok: true, events: 3, first: 3 });
  });

  it('is not whole where its beginning is missing', async () => {
    expect(await verify(log(5).slice(2))).toMatchObject({ ok: false, revision: 1 });
  });

  it.each([
    ['changed', (events: LogEvent[]) => [events[0], { ...events[1], actor: 'somebody else' }, events[2]], 2],
    ['removed', (events: LogEvent[]) => [events[0], events[2]], 3],
    ['reordered', (events: LogEvent[]) => [events[1], events[0]], 1],
    ['of another log', (events: LogEvent[]) => [{ ...events[0], namespace: 'other' }], 1],
    [
      'told to follow something else',
      (events: LogEvent[]) => [events[0], { ...events[1], prevHash: base64('1'.repeat(64)) }],
      2,
    ],
  ])('tells an event that was %s', async (_, harm, revision) => {
    expect(await verify(harm(log(3)) as LogEvent[])).toMatchObject({ ok: false, revision });
  });

  it('tells of nothing that it is whole', async () => {
    expect(await verify([])).toMatchObject({ ok: false });
  });
});

describe('a checkpoint, verified in the browser', () => {
  async function signed() {
    const signer = fileCheckpointSigner(`${await makeTestDirectory('checkpoint')}/key.pem`);
    const { signature, keyId, publicKeyPem } = signer.sign('default', 7, 'ab'.repeat(32), 1_796_119_200_000_123);
    return {
      namespace: 'default',
      revision: '7',
      hash: base64('ab'.repeat(32)),
      time: moment(1_796_119_200_000_123),
      signature: Buffer.from(signature).toString('base64'),
      keyId,
      publicKey: publicKeyPem,
    };
  }

  it('is good as the coordinator signs it', async () => {
    expect(await verifyCheckpoint(await signed())).toMatchObject({ ok: true });
  });

  it('is not good of another place, or by another key', async () => {
    const good = await signed();
    expect(await verifyCheckpoint({ ...good, revision: '8' })).toMatchObject({ ok: false });
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const other = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const forged = sign(null, Buffer.from('{}'), privateKey).toString('base64');
    expect(await verifyCheckpoint({ ...good, publicKey: other, signature: forged })).toMatchObject({ ok: false });
  });
});

describe('what the log says, in words', () => {
  const event = (kind: string, body: unknown, more: Partial<LogEvent> = {}): LogEvent => ({
    namespace: 'default',
    revision: '1',
    time: '2026-12-01T10:00:00Z',
    kind,
    runId: '',
    leaseId: '',
    hash: '',
    body: JSON.stringify(body),
    ...more,
  });

  it('has words for every kind of event that there is', () => {
    const source = readFileSync(new URL('../../src/domain/event.ts', import.meta.url), 'utf8');
    const kinds = [...source.matchAll(/readonly kind: '([a-z_]+)'/g)].map(([, kind = '']) => kind);
    expect(kinds.length).toBeGreaterThan(20);
    expect(EVENT_KINDS).toEqual([...new Set(kinds)].sort());
  });

  it('puts free texts back in their places, and says which were erased', () => {
    const known = 'cd'.repeat(32);
    const body = { run: { purpose: { sha256: known } }, other: { sha256: 'ef'.repeat(32) } };
    const texts = [{ digest: base64(known), salt: '', text: 'ship <b>it</b>' }];
    expect(bodyOf(event('run_created', body, { texts }))).toEqual({
      run: { purpose: 'ship <b>it</b>' },
      other: '[erased]',
    });
  });

  it('shows what it does not know by its name, and never fails', () => {
    expect(lineOf(event('something_new', {}))).toMatchObject({ words: 'something new' });
    for (const kind of EVENT_KINDS) {
      expect(lineOf({ ...event(kind, {}), body: 'no JSON' }).words).not.toBe('');
      expect(lineOf(event(kind, { denials: 3, writes: {}, refusals: null, run: [], lease: 'x' })).words).not.toBe('');
    }
  });

  it('counts refusals by reason and by time', () => {
    const at = (minute: number) => `2026-12-01T10:${String(minute).padStart(2, '0')}:00Z`;
    const from = Date.parse(at(0));
    const counts = refusalsByReason(
      [
        event('acquire_refused', { refusal: 'held' }, { time: at(5) }),
        event('acquire_refused', { refusal: 'held' }, { time: at(35) }),
        event('checks_denied', { denials: [{ reason: 'stale_token', count: 40 }] }, { time: at(59) }),
        event('acquire_refused', { refusal: 'held' }, { time: '2026-12-01T09:59:59Z' }),
        event('lease_granted', {}, { time: at(5) }),
      ],
      from,
      from + 3_600_000,
      2,
    );
    expect(counts).toEqual([
      { what: 'write', reason: 'stale_token', total: 40, buckets: [0, 40] },
      { what: 'acquire', reason: 'held', total: 2, buckets: [1, 1] },
    ]);
  });

  it('tells the tokens of a resource, each once, and the version reported last', () => {
    const granted = (revision: number, token: number, kind = 'lease_granted') => {
      const entries = [
        { resource: 'a', token, access: 'write' },
        { resource: 'b', token: 9, access: 'read' },
      ];
      return event(kind, kind === 'lease_granted' ? { lease: { entries } } : { entries, cause: 'amended' }, {
        revision: String(revision),
        runId: `run-${revision}`,
      });
    };
    const events = [granted(3, 20), granted(2, 10, 'lease_amended'), granted(1, 10)];
    expect(tokensOf(events, 'a').map(({ token, runId, cause }) => [token, runId, cause])).toEqual([
      ['20', 'run-3', 'granted'],
      ['10', 'run-1', 'granted'],
    ]);
    const reported = (revision: number, newVersion: string | null) =>
      event(
        'writes_reported',
        { target: 't', writes: [{ resource: 'a', result: 'succeeded', newVersion }] },
        {
          revision: String(revision),
        },
      );
    expect(lastVersionOf([reported(8, null), reported(7, '42'), reported(6, '41')], 'a')?.version).toBe('42');
    expect(lastVersionOf([reported(7, '42')], 'b')).toBeNull();
  });
});

describe('the guide to reason codes', () => {
  const guide = readFileSync(new URL('../../docs/reason-codes.md', import.meta.url), 'utf8');
  const codes = reasonCodes(guide);

  it('is read with what each code means and what to do', () => {
    const [held] = found(codes, 'held');
    expect(held).toMatchObject({ code: 'HELD', chapter: 'Refusal kinds' });
    expect(held?.cells.map(([column]) => column)).toEqual(['Meaning', 'What to do', 'Who', 'Retryable']);
    expect(codes.length).toBeGreaterThan(100);
  });

  it('comes with the alerts and the signs of trouble of the operations guide', () => {
    const rows = guideRows(readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8'));
    const of = (chapter: string) => rows.filter((row) => row.chapter === chapter);
    expect(found(of('Alerts'), 'WritWriteInDoubt')).toMatchObject([
      {
        isCode: true,
        cells: [
          ['Severity', 'critical'],
          ['Meaning', expect.any(String)],
          ['What to do', 'Writes in doubt'],
        ],
      },
    ]);
    const [stays] = of('Trouble').filter(({ code }) => code === 'a resource stays held');
    expect(stays).toMatchObject({
      isCode: false,
      cells: [
        ['Meaning', expect.any(String)],
        ['What to do', expect.stringContaining('writ lease revoke')],
      ],
    });
    expect(of('Trouble').every(({ cells }) => cells.length === 2)).toBe(true);
  });

  it('is searched by code, whatever its case, and by word', () => {
    expect(found(codes, 'stale token').every(({ code }) => code.toLowerCase() === 'stale_token')).toBe(true);
    expect(found(codes, 'sandbox').length).toBeGreaterThan(1);
    expect(found(codes, '')).toBe(codes);
  });
});
