/** Lets those know who hang on a call that this replica is about to shut down (F26). */
export class Leaving {
  private readonly listeners = new Set<() => void>();
  private left = false;

  get hasLeft(): boolean {
    return this.left;
  }

  leave(): void {
    this.left = true;
    for (const listener of this.listeners) listener();
  }

  /** Calls back when this replica leaves, and not if it has left. Returns what takes the listener away again. */
  onLeave(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
