import { describe, expect, it } from 'vitest';
import { type HistoryFacts, judgeHistory, sameIdentity } from '../../src/engine/history.js';
import type { DatabaseIdentity } from '../../src/storage/store.js';
import { IDENTITY } from '../support/domain.js';

const seen = { revision: 41, hash: 'aa', time: 1 };

/** A database that is as it was, with a witness that agrees. */
function facts(changes: Partial<HistoryFacts> = {}, identity: Partial<DatabaseIdentity> = {}): HistoryFacts {
  return {
    recorded: IDENTITY,
    current: { ...IDENTITY, ...identity },
    failover: 'asynchronous',
    seen,
    hashAtSeen: seen.hash,
    ...changes,
  };
}

const RESTARTED = { postmasterStart: IDENTITY.postmasterStart + 1 };
const PROMOTED = { ...RESTARTED, timeline: 2 };

describe('judging the history of a database (P2, F13; design: fail-over and restore)', () => {
  it('the same identity and an unbroken log: the same', () => {
    expect(judgeHistory(facts())).toEqual({ kind: 'same' });
    // Without a witness the postmaster that answers is still the one that took the commits.
    expect(judgeHistory(facts({ seen: null, hashAtSeen: null }))).toEqual({ kind: 'same' });
  });

  it('a first start records the identity and waits for nothing', () => {
    expect(judgeHistory(facts({ recorded: null, seen: null, hashAtSeen: null }))).toMatchObject({
      kind: 'changed',
      settle: false,
    });
  });

  it('a plain restart with an unbroken log ends nothing', () => {
    expect(judgeHistory(facts({}, RESTARTED)).kind).toBe('changed');
  });

  it.each([
    ['another cluster', facts({}, { systemIdentifier: '7' })],
    ['a dump loaded into another database', facts({}, { databaseOid: 1 })],
    ['a dump loaded into a new table', facts({}, { eventTableOid: 1 })],
    ['an older backup: the log ends before what was seen', facts({ hashAtSeen: null })],
    ['another history at the revision that was seen', facts({ hashAtSeen: 'bb' })],
    ['the same after a restart', facts({ hashAtSeen: null }, RESTARTED)],
    ['a restart, and no witness at all', facts({ seen: null, hashAtSeen: null }, RESTARTED)],
    ['a fail-over under asynchronous replication', facts({}, PROMOTED)],
    ['a fail-over that lost the last commits', facts({ hashAtSeen: null, failover: 'synchronous' }, PROMOTED)],
    [
      'a fail-over under synchronous replication, and no witness at all',
      facts({ seen: null, hashAtSeen: null, failover: 'synchronous' }, PROMOTED),
    ],
    ['another cluster on an older timeline', facts({}, { systemIdentifier: '7', timeline: 0 })],
  ])('lost: %s', (_, given) => {
    expect(judgeHistory(given)).toMatchObject({ kind: 'lost', why: expect.stringMatching(/./) });
  });

  it('a fail-over under synchronous replication with an unbroken log only settles', () => {
    expect(judgeHistory(facts({ failover: 'synchronous' }, PROMOTED))).toMatchObject({ kind: 'changed', settle: true });
  });

  it('a server on an older timeline is never believed, whatever its log says', () => {
    const recorded = { ...IDENTITY, timeline: 2 };
    for (const failover of ['asynchronous', 'synchronous'] as const) {
      for (const hashAtSeen of [seen.hash, null]) {
        expect(judgeHistory(facts({ recorded, hashAtSeen, failover })).kind).toBe('disbelieved');
      }
    }
  });

  it('identities are the same when every part is', () => {
    expect(sameIdentity(IDENTITY, { ...IDENTITY })).toBe(true);
    for (const part of Object.keys(IDENTITY) as (keyof DatabaseIdentity)[]) {
      expect(sameIdentity(IDENTITY, { ...IDENTITY, [part]: 99 })).toBe(false);
    }
  });
});
