import type { Fault } from '../domain/fault.js';
import type { State } from '../domain/state.js';

/** Up to so many calls are looked at within a millisecond; more of them are looked at more seldom. */
const CALLS_PER_MS = 1_000;

interface WaitingCall {
  readonly leaseId: string;
  readonly attachment: number;
  readonly wake: () => void;
}

/**
 * The calls that hang on waiting requests of one namespace. A batch wakes only those whose request it settled; and
 * however many batches there are, all calls together are looked at once a turn of the event loop, or more seldom when
 * there are very many: ten thousand hanging calls cost a tenth of the time at most, and each is told 10 ms late.
 */
export class WaitingCalls {
  private readonly calls = new Set<WaitingCall>();
  private looking = false;

  constructor(private readonly engine: { readonly state: State; readonly notReady: Fault | null }) {}

  /** Calls back once, when the request does not wait by this attachment any more; also if that is so already. */
  add(leaseId: string, attachment: number, wake: () => void): () => void {
    const call = { leaseId, attachment, wake };
    this.calls.add(call);
    if (this.isSettled(call)) this.changed();
    return () => this.calls.delete(call);
  }

  /** The acknowledged state is another one, or cannot be believed any more. */
  changed(): void {
    if (this.looking || this.calls.size === 0) return;
    this.looking = true;
    const look = () => {
      this.looking = false;
      this.wakeSettled();
    };
    if (this.calls.size <= CALLS_PER_MS) setImmediate(look);
    else setTimeout(look, this.calls.size / CALLS_PER_MS);
  }

  private wakeSettled(): void {
    for (const call of this.calls) {
      if (!this.isSettled(call)) continue;
      this.calls.delete(call);
      call.wake();
    }
  }

  private isSettled({ leaseId, attachment }: WaitingCall): boolean {
    if (this.engine.notReady !== null) return true;
    const lease = this.engine.state.leases.get(leaseId);
    return lease?.state !== 'waiting' || lease.waiting?.attachment !== attachment;
  }
}
