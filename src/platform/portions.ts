import { setImmediate as nextTurn } from 'node:timers/promises';

/** Of what is converted in one turn of the event loop, in characters; the last item may go beyond it. */
const MAX_PORTION = 65_536;

let last: Promise<void> = Promise.resolve();

/**
 * Resolves in a turn of the event loop that nobody else is given: whoever converts much does a portion in each, and
 * between two portions, whosever they are, all other callers are served.
 */
export function turnOfOnesOwn(): Promise<void> {
  last = last.then(() => nextTurn());
  return last;
}

/** Some items, as text. */
export interface Portion {
  readonly text: string;
  readonly count: number;
}

/**
 * Items as text, each portion in a turn of its own: an event with a large map takes some 10 ms to convert, and a page of
 * a thousand small ones as long; a fence check waits for one portion of whoever reads the log, and for no more.
 */
export async function* inPortions<T>(items: readonly T[], textOf: (item: T) => string): AsyncGenerator<Portion> {
  for (let done = 0; done < items.length; ) {
    await turnOfOnesOwn();
    let text = '';
    const begun = done;
    do {
      text += textOf(items[done] as T);
      done += 1;
    } while (done < items.length && text.length < MAX_PORTION);
    yield { text, count: done - begun };
  }
}
