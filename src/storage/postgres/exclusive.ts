import { type AppendBatch, type AppendResult, type EventRecord, type Gate, StoreError } from '../store.js';
import { type AppendContext, append } from './append.js';
import type { Lane, Session } from './connections.js';
import { asStoreError, isLostRace, toStoreError } from './errors.js';
import { LOCK_CLASS, lockKey } from './gate.js';
import { readTail } from './read.js';
import { statement } from './statement.js';
import type { WriteSetMemory } from './write-set-memory.js';

/**
 * The way for a replica that keeps losing: it holds the namespace alone, so that what it decides is still so when it
 * appends. Everybody else's append sees `busy`, also while this one still waits for the lock.
 *
 * The bounds are SET LOCAL, since they belong to this transaction only: how long it waits for the lock, and how long it
 * may sit idle, so that a replica that was stopped in the middle cannot hold the namespace. READ COMMITTED is named
 * because the whole point is that the statement after the lock sees what was committed before it was granted.
 */
const BEGIN = `
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '3s';
SET LOCAL idle_in_transaction_session_timeout = '3s';
SET LOCAL statement_timeout = '10s'`;

const LOCK = statement('lock_namespace', `SELECT pg_advisory_xact_lock(${LOCK_CLASS}, $lock_key::integer)`);

const TAIL_PAGE = 1_000;

/** What an attempt came to, with whether its transaction may be committed. */
type Attempt =
  | { readonly kind: 'locked_out' }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'refused'; readonly result: AppendResult }
  | { readonly kind: 'ready'; readonly result: AppendResult; readonly batch: AppendBatch };

export async function appendExclusively(
  lane: Lane,
  context: AppendContext,
  namespace: string,
  after: number,
  decide: (tail: readonly EventRecord[], gate: Gate) => AppendBatch | null,
): Promise<AppendResult | null> {
  return lane.write(async (session) => {
    const attempt = await tryUnderLock(session, context, namespace, after, decide);
    if (attempt.kind === 'ready') return commit(session, context.memory, attempt.batch, attempt.result);
    await session.command('ROLLBACK').catch(asStoreError('read'));
    switch (attempt.kind) {
      case 'locked_out':
        return { outcome: 'busy', gate: await context.gates.read(session, namespace).catch(asStoreError('read')) };
      case 'nothing':
        return null;
      case 'refused':
        return attempt.result;
    }
  });
}

async function tryUnderLock(
  session: Session,
  context: AppendContext,
  namespace: string,
  after: number,
  decide: (tail: readonly EventRecord[], gate: Gate) => AppendBatch | null,
): Promise<Attempt> {
  let tail: EventRecord[];
  let gate: Gate;
  try {
    await session.command(BEGIN);
    await session.query(LOCK, { lock_key: lockKey(namespace) });
    // Statements of their own: the snapshot of the one that waited is older than the lock it got.
    tail = await wholeTail(session, namespace, after);
    gate = await context.gates.read(session, namespace);
  } catch (error) {
    if (isLostRace(error)) return { kind: 'locked_out' };
    throw toStoreError(error, 'read');
  }
  // The append would be refused for it; no decision on another server's word.
  if (gate.inRecovery || !gate.durable) return { kind: 'refused', result: { outcome: 'identity', gate } };
  const batch = await decideOrRollBack(session, () => decide(tail, gate));
  if (batch === null) return { kind: 'nothing' };
  const result = await append(session, batch, context, true);
  return result.outcome === 'appended' ? { kind: 'ready', result, batch } : { kind: 'refused', result };
}

async function wholeTail(session: Session, namespace: string, after: number): Promise<EventRecord[]> {
  const tail: EventRecord[] = [];
  for (let from = after; ; from = tail.at(-1)?.revision ?? from) {
    const page = await readTail(session, namespace, from, TAIL_PAGE);
    tail.push(...page);
    if (page.length < TAIL_PAGE) return tail;
  }
}

/** An error of the caller's own passes unchanged, and leaves a connection that can be used. */
async function decideOrRollBack<T>(session: Session, decide: () => T): Promise<T> {
  try {
    return decide();
  } catch (error) {
    await session.command('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function commit(
  session: Session,
  memory: WriteSetMemory,
  batch: AppendBatch,
  result: AppendResult,
): Promise<AppendResult> {
  let tag: string;
  try {
    tag = await session.command('COMMIT');
  } catch (error) {
    if (isLostRace(error)) return { outcome: 'stale', gate: null };
    throw toStoreError(error, 'write');
  }
  // COMMIT of a transaction that failed answers without an error, by the tag ROLLBACK.
  if (tag !== 'COMMIT') return { outcome: 'stale', gate: null };
  const warning = session.warning();
  if (warning !== null)
    throw new StoreError('unknown_outcome', `the commit was not confirmed as asked for: ${warning}`);
  if (result.outcome === 'appended') memory.stored(result.gate.identity, batch.namespace, batch.leases);
  return result;
}
