import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { DomainEvent } from '../../src/domain/event.js';
import { evolve } from '../../src/domain/evolve.js';
import type { Lease } from '../../src/domain/lease.js';
import { emptyState } from '../../src/domain/state.js';
import { toRecords } from '../../src/engine/batch.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import { GENESIS } from '../../src/engine/replica-state.js';
import { type LeaseRow, leaseColumns, leaseFromRow, writeSetColumns } from '../../src/storage/postgres/lease-rows.js';
import { leased, Namespace, optimistic } from '../support/domain.js';

// A replica holds up to a million leases. Objects that V8 gives a hidden class each are three times as large and many
// times as slow, and nothing but the memory in use tells.
setFlagsFromString('--allow-natives-syntax');
const sameShape = runInThisContext('(a, b) => %HaveSameMap(a, b)') as (a: object, b: object) => boolean;

const COUNT = 300;
/** The first few of a kind may differ, until the engine has seen enough of them. */
const FEW = 30;

/** How often the next record has another shape than the one before. */
function changesOfShape(records: readonly object[]): number {
  return records.filter((record, index) => index > 0 && !sameShape(record, records[index - 1] as object)).length;
}

function expectFewShapes(leases: readonly Lease[]): void {
  expect(leases).toHaveLength(COUNT);
  expect(changesOfShape(leases)).toBeLessThan(FEW);
  expect(changesOfShape(leases.flatMap((lease) => lease.entries))).toBeLessThan(FEW);
}

/** Of one run each, since a run may have only so many. */
function crowd(): { ns: Namespace; leases: Lease[] } {
  const ns = new Namespace();
  const leases = Array.from({ length: COUNT }, (_, i) => {
    ns.runs(`run-${i}`);
    return ns.hold(`run-${i}`, leased(`doc/${i}/a`), optimistic(`doc/${i}/b`));
  });
  return { ns, leases };
}

const recordsOf = (events: readonly DomainEvent[]) => toRecords('test', 'batch', GENESIS, events);

describe('leases and their entries have one shape', () => {
  it('as granted, as renewed and as ended', () => {
    const { ns, leases } = crowd();
    expectFewShapes(leases);
    for (const lease of leases) ns.renew(lease, { marker: 'half' });
    expectFewShapes([...ns.state.leases.values()]);
    for (const lease of leases) ns.release(lease);
    expectFewShapes([...ns.state.leases.values()]);
  });

  it('as granted after a wait', () => {
    const ns = new Namespace().runs('holder');
    const leases = Array.from({ length: COUNT }, (_, i) => {
      const held = ns.hold('holder', leased(`doc/${i}`));
      ns.runs(`run-${i}`);
      const waiting = ns.queue(`run-${i}`, leased(`doc/${i}`));
      ns.release(held);
      return ns.state.leases.get(waiting.leaseId) as Lease;
    });
    expect(leases.every((lease) => lease.state === 'active')).toBe(true);
    expectFewShapes(leases);
  });

  it('as followed in the log', () => {
    const { ns } = crowd();
    const followed = emptyState('test');
    for (const record of recordsOf(ns.events)) evolve(followed, decodeEvent(record), record.revision);
    expectFewShapes([...followed.leases.values()]);
  });

  it('as loaded from the projections', () => {
    const { leases } = crowd();
    const rows = leases.map((lease) => ({ ...leaseColumns(lease), ...writeSetColumns(lease) }) as unknown as LeaseRow);
    expectFewShapes(rows.map(leaseFromRow));
  });

  it('equal lists of actions are one list', () => {
    const { ns, leases } = crowd();
    const followed = recordsOf(ns.events).flatMap((record) => {
      const { body } = decodeEvent(record);
      return body.kind === 'lease_granted' ? [body.lease] : [];
    });
    const loaded = leases.map((lease) =>
      leaseFromRow({ ...leaseColumns(lease), ...writeSetColumns(lease) } as unknown as LeaseRow),
    );
    const lists = [...leases, ...followed, ...loaded].flatMap((lease) => lease.entries.map((entry) => entry.actions));
    expect(new Set(lists).size).toBe(2);
  });
});

describe('events have one shape', () => {
  it('as written', () => {
    const { ns } = crowd();
    expect(changesOfShape(recordsOf(ns.events))).toBeLessThan(FEW);
  });
});
