import { decideCutLog } from '../domain/decide/cut-log.js';
import { Fault, invalidArgument } from '../domain/fault.js';
import { cutPortion } from '../engine/cut-portion.js';
import { lostBranches } from '../engine/lost-branches.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { At, CallContext, CutLogInput, CutLogOutcome } from './api.js';
import { isSigned } from './checkpoint-signature.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** Removed at once, so that nothing else waits for it. */
const PORTION = 2_000;
/** Of one call; whoever asks again, and the coordinators' upkeep, remove the rest. */
const PORTIONS = 10;
const DIGEST = /^[0-9a-f]{64}$/;

/**
 * CutLog (A2). The event comes first: a cut that was begun is recorded, also when it was cut short, and asking again
 * ends it. It is at the caller to have the archive: what the record says of it is a digest.
 */
export async function cutLog(deps: Deps, context: CallContext, input: CutLogInput): Promise<At<CutLogOutcome>> {
  const { checkpoint, archiveDigest, evenYoung, reason } = input;
  const checks = new FieldChecks();
  checks.text('reason', reason, 1_024, true);
  if (!DIGEST.test(archiveDigest)) checks.reject('archive_digest', 'must be 32 bytes: the SHA-256 of the archive');
  if (!isSigned(checkpoint)) checks.reject('checkpoint', 'must be signed by the key that it names');
  checks.done();
  const engine = await engineOf(deps, context);
  if (checkpoint.namespace !== engine.namespace) throw unfit(`is of namespace "${checkpoint.namespace}"`);
  const firstRevision = checkpoint.revision + 1;
  const known = await engine.store.readCut(engine.namespace);
  let { revision, now } = await engine.read(() => null);
  if (known === null || known.firstRevision < firstRevision) {
    const time = await timeOfLast(engine, input, revision);
    const branches = await lostBranches(engine.store, engine.namespace);
    const { revision: at, hash, time: signedAt, keyId, signature } = checkpoint;
    const command = {
      checkpoint: { revision: at, hash, time: signedAt, keyId, signature: Buffer.from(signature).toString('base64') },
      time,
      archiveDigest,
      evenYoung,
      reason,
      lostBranches: branches,
      requestIds: requestIds(context.requestId),
    };
    ({ revision, now } = await engine.submit(context.principal.name, (decision) => decideCutLog(decision, command)));
  } else if (known.firstRevision > firstRevision || known.hashBefore !== checkpoint.hash) {
    throw alreadyCut(known.firstRevision);
  }
  const removed = await removePortions(engine, context);
  const cut = await engine.store.readCut(engine.namespace);
  const left = cut === null ? 0 : Math.max(0, cut.firstRevision - cut.lowest);
  return { value: { firstRevision, removed, left }, revision, now };
}

/** The time of the event that the checkpoint is over; it must be the one that the log has, and not its last. */
async function timeOfLast(engine: NamespaceEngine, { checkpoint }: CutLogInput, head: number): Promise<number> {
  if (checkpoint.revision >= head) throw unfit('is over the head of the log, which is never cut');
  const event = await engine.store.readEvent(engine.namespace, checkpoint.revision);
  if (event?.hash !== checkpoint.hash) throw unfit('is not over the event that the log has at its revision');
  return event.time;
}

async function removePortions(engine: NamespaceEngine, context: CallContext): Promise<number> {
  let removed = 0;
  for (let portion = 0; portion < PORTIONS && !context.signal.aborted; portion += 1) {
    const done = await cutPortion(engine.store, engine.namespace, PORTION);
    removed += done.removed;
    if (!done.more) break;
  }
  return removed;
}

function unfit(what: string): Fault {
  return invalidArgument([{ field: 'checkpoint', description: what }]);
}

function alreadyCut(first: number): Fault {
  return new Fault(
    'failed_precondition',
    'CURSOR_EXPIRED',
    `The log was cut already: it begins at revision ${first}. What came before is in another archive.`,
    { metadata: { first_revision: String(first) } },
  );
}
