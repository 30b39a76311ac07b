import { Fault } from '../domain/fault.js';

/** On one replica, of each kind. */
const MAX_WATCHES = 1_000;
const MAX_WATCHES_OF_ONE = 64;

/** How many watches of one kind there are on this replica, by principal: those of another kind take no place from them. */
export class WatchLimit {
  private readonly byPrincipal = new Map<string, number>();
  private all = 0;

  /** What is counted, in the plural, as refusals name it. */
  constructor(private readonly what: string) {}

  get count(): number {
    return this.all;
  }

  /** Throws a Fault WATCH_LIMIT where there are as many as there may be. */
  take(principal: string): void {
    const own = this.byPrincipal.get(principal) ?? 0;
    if (this.all >= MAX_WATCHES || own >= MAX_WATCHES_OF_ONE)
      throw new Fault(
        'resource_exhausted',
        'WATCH_LIMIT',
        `This replica has ${own} ${this.what} of yours and ${this.all} altogether; at most ${MAX_WATCHES_OF_ONE} of one principal and ${MAX_WATCHES} of all are allowed. Share one in each process, and close those that nobody reads.`,
        { metadata: { limited: this.what, max_of_one: String(MAX_WATCHES_OF_ONE), max: String(MAX_WATCHES) } },
      );
    this.byPrincipal.set(principal, own + 1);
    this.all += 1;
  }

  release(principal: string): void {
    const own = (this.byPrincipal.get(principal) ?? 1) - 1;
    if (own === 0) this.byPrincipal.delete(principal);
    else this.byPrincipal.set(principal, own);
    this.all -= 1;
  }
}
