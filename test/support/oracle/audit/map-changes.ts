import type { ConflictMapDocument } from '../../../../src/domain/conflict-map/document.js';
import type { DomainEvent, EventBody } from '../../../../src/domain/event.js';
import type { LeaseEntry } from '../../../../src/domain/lease.js';
import type { Micros } from '../../../../src/domain/time.js';
import { promise } from '../violation.js';
import type { Facts } from './facts.js';
import { underNoFreeze } from './in-the-way.js';
import { tokensInOrder } from './tokens.js';

export function mapPut(facts: Facts, event: DomainEvent, body: Extract<EventBody, { kind: 'conflict_map_put' }>): void {
  facts.oracle.use(body.document as ConflictMapDocument);
  facts.sets = (body.document as ConflictMapDocument).sets ?? {};
  facts.mapPutAt = event.time;
  for (const lease of [...facts.leases.active(), ...facts.leases.waiting.values()]) {
    const ties = [...new Set([...lease.ties, ...facts.oracle.ties])];
    const after = { ...lease, ties };
    facts.leases.put(lease.state === 'active' ? facts.withUnasked(after) : after);
  }
}

export function leaseReexpanded(facts: Facts, leaseId: string, entries: readonly LeaseEntry[], time: Micros): void {
  // What an amendment left under lock delay gets no entries: only what rules add to it.
  if (!facts.leases.has(leaseId) && facts.delays.has(leaseId)) return;
  const before = facts.lease(leaseId);
  if (before.state === 'ended') {
    const same = entries.every((entry, index) => entry.token === before.entries[index]?.token);
    promise(facts.delays.has(leaseId) && same, `P5: ${leaseId} was expanded anew after its end`);
    return;
  }
  // What waits holds nothing: it asks for what the map makes of it now, and for nothing that only one before did.
  if (before.state === 'waiting') {
    facts.leases.put({ ...before, entries, ties: facts.oracle.ties });
    return;
  }
  for (const old of before.entries) {
    const now = entries.find((e) => e.resource === old.resource && e.access === old.access && e.scope === old.scope);
    promise(now !== undefined, `C5: ${leaseId} lost ${old.resource} by a change of the map`);
    promise(now.token === old.token, `P2: ${leaseId} has another token on ${old.resource} by a change of the map`);
    promise(now.exclusive || !old.exclusive, `C5: ${leaseId} holds ${old.resource} less strictly than before`);
  }
  const known = new Set(before.entries.map((entry) => entry.token));
  tokensInOrder(facts, entries, time, (token) => !known.has(token));
  const fresh = entries.filter((entry) => !known.has(entry.token) && entry.actions.length > 0);
  underNoFreeze(facts, { ...before, entries: fresh });
  facts.leases.put(facts.withUnasked({ ...before, entries }));
}
