import { Fault } from '../../domain/fault.js';

/** As much of a stream's writing side as this needs. */
export interface WritingSide<Frame> {
  /** False: it will not take more until it says `drain`. */
  write(frame: Frame): boolean;
  once(event: 'drain', listener: () => void): unknown;
}

export interface OutboxOptions<Item, Frame> {
  readonly surface: WritingSide<Frame>;
  /** Puts items into one message. */
  readonly frameOf: (items: readonly Item[]) => Frame;
  /** What an item counts of `MAX_FRAME_WEIGHT`. */
  readonly weightOf: (item: Item) => number;
  /** The other side does not take any more for now, or does so again. */
  readonly blocked: (isBlocked: boolean) => void;
  /** Everything there was is on its way. */
  readonly emptied: () => void;
  /** The other side has not read for too long, or too much waits for it. */
  readonly tooSlow: (fault: Fault) => void;
}

/** About a quarter of a megabyte: stock clients take 4 MiB. */
const MAX_FRAME_WEIGHT = 256;
/** Items that wait for a reader. */
const MAX_ITEMS = 8_192;
const MAX_BLOCKED_MS = 10_000;

/**
 * What is to be sent on one stream: items of one turn of the event loop travel in one message, no faster than the other
 * side reads, and no more of them wait for it than there is room for. Who does not read is cut off, and may come back.
 */
export class Outbox<Item, Frame> {
  readonly #options: OutboxOptions<Item, Frame>;
  #items: Item[] = [];
  #scheduled = false;
  #patience: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: OutboxOptions<Item, Frame>) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  push(item: Item): void {
    if (this.#closed) return;
    if (this.#items.length >= MAX_ITEMS) {
      this.#slow(`${MAX_ITEMS} messages wait for it`);
      return;
    }
    this.#items.push(item);
    if (this.#scheduled || this.#patience !== undefined) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  /** What waits is given up. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#items = [];
    clearTimeout(this.#patience);
  }

  #flush(): void {
    const { surface, frameOf, emptied } = this.#options;
    for (let from = 0; from < this.#items.length; ) {
      const until = this.#endOfFrame(from);
      const hasRoom = surface.write(frameOf(this.#items.slice(from, until)));
      from = until;
      if (hasRoom) continue;
      this.#items = this.#items.slice(from);
      this.#wait();
      return;
    }
    this.#items = [];
    if (!this.#closed) emptied();
  }

  #endOfFrame(from: number): number {
    let weight = 0;
    let until = from;
    do {
      weight += this.#options.weightOf(this.#items[until] as Item);
      until += 1;
    } while (weight < MAX_FRAME_WEIGHT && until < this.#items.length);
    return until;
  }

  #wait(): void {
    const { surface, blocked } = this.#options;
    blocked(true);
    this.#patience = setTimeout(
      () => this.#slow(`it has read nothing for ${MAX_BLOCKED_MS / 1_000} s`),
      MAX_BLOCKED_MS,
    );
    surface.once('drain', () => {
      clearTimeout(this.#patience);
      this.#patience = undefined;
      if (this.#closed) return;
      blocked(false);
      this.#flush();
    });
  }

  #slow(why: string): void {
    const text = `the stream is ended, as its caller does not keep up: ${why}. Open another one; nothing is lost by it.`;
    this.#options.tooSlow(new Fault('unavailable', 'SLOW_READER', text));
  }
}
