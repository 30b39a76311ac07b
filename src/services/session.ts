import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { toFault } from '../engine/trouble.js';
import { type AskedForWriteSet, askForWriteSet, tell, withCredentials } from './acquire-write-set.js';
import type {
  AcquireInput,
  AcquireOutcome,
  At,
  CallContext,
  LeaseSession,
  ReleaseInput,
  ReleaseOutcome,
  RenewalOutcome,
  RenewInput,
  SessionListener,
} from './api.js';
import { type Deps, engineOf } from './deps.js';
import { releaseLease } from './release-lease.js';
import { renewLeases } from './renew-leases.js';
import type { Tell } from './session-leases.js';

/** A place in the queue that is kept while the session lasts. */
interface Place {
  readonly engine: NamespaceEngine;
  readonly leaseId: string;
  readonly attachment: number;
  readonly stopListening: () => void;
}

/**
 * Session: the leases and places of one caller, who is told what becomes of them. It holds nothing of its own: leases live
 * by their ttl, and a place that it leaves is kept as between two calls (design: waiting).
 */
export class Session implements LeaseSession {
  private readonly places = new Set<Place>();
  private readonly tell: Tell;
  private isOver = false;

  constructor(
    private readonly deps: Deps,
    private readonly listener: SessionListener,
  ) {
    this.tell = (event) => listener.happened(event);
    deps.sessionLeases.opened(this.tell);
  }

  /** As AcquireWriteSet, but for the wait: what becomes of a place is told. */
  async acquire(context: CallContext, input: AcquireInput): Promise<At<AcquireOutcome>> {
    const asked = await askForWriteSet(this.deps, context, input);
    const { engine, decided } = asked;
    if (decided.kind === 'waiting') return this.takePlace(context, input, asked, decided);
    const { value } = decided.answer;
    // By an old key it may have ended long ago.
    if (value.kind === 'lease' && value.lease.state === 'active') this.hold(engine, value.lease.leaseId);
    return decided.answer;
  }

  async renew(context: CallContext, input: RenewInput): Promise<At<readonly RenewalOutcome[]>> {
    const answer = await renewLeases(this.deps, context, input);
    const engine = await engineOf(this.deps, context);
    for (const { leaseId, lease } of answer.value) if (lease !== null) this.hold(engine, leaseId);
    return answer;
  }

  async release(context: CallContext, input: ReleaseInput): Promise<At<ReleaseOutcome>> {
    const engine = await engineOf(this.deps, context);
    const { leaseId } = input;
    // The answer tells of its end; nobody is to hear of it twice.
    if (leaseId !== null) this.deps.sessionLeases.detach(engine, leaseId, this.tell);
    try {
      return await releaseLease(this.deps, context, input);
    } catch (error) {
      if (leaseId !== null && engine.state.leases.get(leaseId)?.state === 'active') this.hold(engine, leaseId);
      throw error;
    }
  }

  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.deps.sessionLeases.detachAll(this.tell);
    for (const place of this.places) this.leave(place);
  }

  private hold(engine: NamespaceEngine, leaseId: string): void {
    if (!this.isOver) this.deps.sessionLeases.attach(engine, leaseId, this.tell);
  }

  /** Attached from here on, until it is settled, another call takes it over, or the session ends. */
  private async takePlace(
    context: CallContext,
    input: AcquireInput,
    { engine }: AskedForWriteSet,
    { leaseId, attachment }: { readonly leaseId: string; readonly attachment: number },
  ): Promise<At<AcquireOutcome>> {
    const { deps } = this;
    deps.installation.attach(engine.namespace, leaseId, attachment);
    let isAnswered = false;
    let isSettled = false;
    const settled = (): void => {
      isSettled = true;
      if (isAnswered) void this.settle(context, input, place);
    };
    const place = { engine, leaseId, attachment, stopListening: engine.onSettled(leaseId, attachment, settled) };
    if (this.isOver) this.leave(place);
    else this.places.add(place);
    const answer = await tell(deps, engine, leaseId).catch((error: unknown) => {
      this.leave(place);
      throw error;
    });
    isAnswered = true;
    if (answer.value.kind === 'waiting') {
      if (isSettled) void this.settle(context, input, place);
      return answer;
    }
    this.leave(place);
    const complete = await withCredentials(deps, engine, context, answer, input.audiences);
    // Not before: what happens to it is told to who knows of it.
    if (answer.value.kind === 'lease') this.hold(engine, leaseId);
    return complete;
  }

  /** It may have been this session itself that asked again. */
  private hasPlace(engine: NamespaceEngine, leaseId: string): boolean {
    return [...this.places].some((place) => place.engine === engine && place.leaseId === leaseId);
  }

  private leave(place: Place): void {
    this.places.delete(place);
    place.stopListening();
    void this.deps.installation.detach(place.engine.namespace, place.leaseId, place.attachment);
  }

  /** The place is no place any more, or another call's; or nothing is known here, and the caller had better ask elsewhere. */
  private async settle(context: CallContext, input: AcquireInput, place: Place): Promise<void> {
    if (!this.places.has(place)) return;
    this.leave(place);
    const { engine, leaseId } = place;
    const { namespace } = engine;
    try {
      const found = await tell(this.deps, engine, leaseId);
      if (found.value.kind === 'waiting') {
        if (!this.hasPlace(engine, leaseId)) this.tell({ namespace, leaseId, kind: 'place_moved' });
        return;
      }
      const answer = await withCredentials(this.deps, engine, context, found, input.audiences);
      const { value, revision, now } = answer;
      if (value.kind === 'lease') {
        this.hold(engine, leaseId);
        const { lease, credentials } = value;
        this.tell({ namespace, leaseId, kind: 'granted', lease, credentials, revision, now });
      } else if (value.kind === 'refusal') {
        const lease = engine.state.leases.get(leaseId);
        const { endReason = null, endedAt = null } = lease ?? {};
        this.tell({ namespace, leaseId, kind: 'lost', endReason, endedAt, refusal: value.refusal });
      }
    } catch (error) {
      this.listener.failed(toFault(error));
    }
  }
}
