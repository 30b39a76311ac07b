import { backoffMs } from './backoff.js';
import type { Duplex } from './channel.js';
import { WritError } from './errors.js';

/** What is asked and answered by numbers on one stream. */
export interface NumberedProtocol<Question, Answer, Request, Response> {
  open(signal: AbortSignal): Promise<Duplex<Request, Response>>;
  /** Questions of one turn of the event loop travel in one message. */
  requestOf(questions: readonly Numbered<Question>[]): Request;
  /** Reads what came; calls back for each answer, and says whether the replica is going away. */
  read(response: Response, answered: (number: number, answer: Answer) => void): { readonly goingAway: boolean };
  /** The stream has ended, however. */
  ended?(): void;
}

export interface Numbered<Question> {
  readonly number: number;
  readonly question: Question;
}

/** How long to wait for an answer. */
export interface AskOptions {
  readonly timeoutMs: number;
  /** For anything at all to be heard on the stream, at most `timeoutMs`. */
  readonly silentMs: number;
}

/** The stream cannot be had, or has ended before the answer: ask in another way. */
export class StreamLost extends Error {
  override readonly name = 'StreamLost';
}

interface Waiting<Answer> {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** One stream, from its opening to its end. */
interface Open<Question, Answer, Request, Response> {
  readonly stop: AbortController;
  readonly waiting: Map<number, Waiting<Answer>>;
  /** Not sent yet. */
  questions: Numbered<Question>[];
  duplex: Duplex<Request, Response> | null;
  heardAt: number;
  isOver: boolean;
}

const BACKOFF = { firstMs: 200, mostMs: 5_000 };
/** A coordinator without the method may be a newer one some day. */
const UNIMPLEMENTED_FOR_MS = 60_000;
const QUESTIONS_PER_MESSAGE = 64;
/** Below what a coordinator takes of one stream. */
const MAX_UNANSWERED = 1_000;

/**
 * One stream that is opened when it is first needed, and again after it was lost, by chance within a while (F5). Whoever
 * asks while it is not there is told so at once: nothing waits for a stream that may not come.
 */
export class NumberedStream<Question, Answer, Request, Response> {
  private current: Open<Question, Answer, Request, Response> | null = null;
  private number = 0;
  private failures = 0;
  private notBefore = Number.NEGATIVE_INFINITY;

  constructor(private readonly protocol: NumberedProtocol<Question, Answer, Request, Response>) {}

  /**
   * Asks, and resolves with the answer. Rejects with StreamLost when there is no stream to ask on, it ends before, or nothing
   * at all is heard on it for `silentMs`; with a WritError DEADLINE_EXCEEDED when the time is up; with the signal's reason. One
   * that is slow is waited for: to ask a busy coordinator twice would make it busier.
   */
  ask(question: Question, { timeoutMs, silentMs }: AskOptions, signal?: AbortSignal): Promise<Answer> {
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    const open = this.usable();
    if (open === null) return Promise.reject(new StreamLost('there is no stream now'));
    const { waiting, questions } = open;
    if (waiting.size >= MAX_UNANSWERED) return Promise.reject(new StreamLost('too much of it is unanswered'));
    this.number = (this.number + 1) >>> 0;
    const { number } = this;
    return new Promise<Answer>((resolve, reject) => {
      const sentAt = performance.now();
      const over = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        waiting.delete(number);
      };
      const late = (): void => {
        over();
        reject(new WritError('DEADLINE_EXCEEDED', `no answer within ${Math.round(timeoutMs)} ms`));
      };
      // The other end may be stopped while its connection stands.
      let timer = setTimeout(
        () => {
          if (open.heardAt < sentAt) this.leave(open);
          else timer = setTimeout(late, timeoutMs - silentMs);
        },
        Math.min(silentMs, timeoutMs),
      );
      const abort = (): void => {
        over();
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
      waiting.set(number, {
        resolve(answer) {
          over();
          resolve(answer);
        },
        reject(error) {
          over();
          reject(error);
        },
      });
      questions.push({ number, question });
      if (questions.length === 1) queueMicrotask(() => this.flush(open));
    });
  }

  private usable(): Open<Question, Answer, Request, Response> | null {
    if (this.current !== null) return this.current;
    if (performance.now() < this.notBefore) return null;
    const open: Open<Question, Answer, Request, Response> = {
      ...{ stop: new AbortController(), waiting: new Map(), questions: [], duplex: null },
      heardAt: Number.NEGATIVE_INFINITY,
      isOver: false,
    };
    this.current = open;
    void this.talk(open);
    return open;
  }

  private flush({ duplex, questions, waiting }: Open<Question, Answer, Request, Response>): void {
    if (duplex === null) return;
    // What nobody waits for any more is not asked.
    const asked = questions.splice(0).filter(({ number }) => waiting.has(number));
    while (asked.length > 0) duplex.send(this.protocol.requestOf(asked.splice(0, QUESTIONS_PER_MESSAGE)));
  }

  private async talk(open: Open<Question, Answer, Request, Response>): Promise<void> {
    let failure: unknown;
    try {
      open.duplex = await this.protocol.open(open.stop.signal);
      this.flush(open);
      for await (const response of open.duplex.received) this.heard(open, response);
    } catch (error) {
      failure = error;
    }
    this.ended(open, failure);
  }

  private heard(open: Open<Question, Answer, Request, Response>, response: Response): void {
    open.heardAt = performance.now();
    this.failures = 0;
    const { goingAway } = this.protocol.read(response, (number, answer) => open.waiting.get(number)?.resolve(answer));
    // What was asked is still answered here; what is asked from now on is asked of another one.
    if (goingAway && this.current === open) {
      this.current = null;
      open.duplex?.finish();
    }
  }

  private leave(open: Open<Question, Answer, Request, Response>): void {
    open.duplex?.leave();
    open.stop.abort();
    this.ended(open, new StreamLost('nothing is heard on the stream'));
  }

  private ended(open: Open<Question, Answer, Request, Response>, failure: unknown): void {
    if (this.current === open) {
      this.current = null;
      this.failures += 1;
      const isUnimplemented = failure instanceof WritError && failure.code === 'UNIMPLEMENTED';
      const restMs = isUnimplemented ? UNIMPLEMENTED_FOR_MS : backoffMs(this.failures, BACKOFF);
      this.notBefore = performance.now() + restMs;
    }
    if (open.isOver) return;
    open.isOver = true;
    const lost = new StreamLost(failure instanceof Error ? failure.message : 'the stream has ended');
    for (const { reject } of [...open.waiting.values()]) reject(lost);
    this.protocol.ended?.();
  }
}
