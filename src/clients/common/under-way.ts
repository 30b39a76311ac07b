import { WritError } from './errors.js';

/** What is under way on a client: it is cancelled when that is closed, and nothing more begins. */
export class UnderWay {
  private readonly cancels = new Set<() => void>();
  private closed = false;

  get isClosed(): boolean {
    return this.closed;
  }

  /** Throws once the client was closed. */
  demandOpen(): void {
    if (this.closed) throw clientClosed();
  }

  /** Returns how to say that it is over. */
  add(cancel: () => void): () => void {
    this.cancels.add(cancel);
    return () => void this.cancels.delete(cancel);
  }

  /** Idempotent. */
  close(): void {
    this.closed = true;
    for (const cancel of [...this.cancels]) cancel();
    this.cancels.clear();
  }
}

export function clientClosed(): WritError {
  return new WritError('CANCELLED', 'this client was closed: connect another one', { reason: 'CLIENT_CLOSED' });
}
