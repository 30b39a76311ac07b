import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { Principal } from '../../auth/principal.js';
import { Fault } from '../../domain/fault.js';
import type { Call } from './call.js';
import { Outbox } from './outbox.js';
import type { Unread } from './unread.js';

/** What is said on a stream in both directions, as one method has it. */
export interface Talk<Request, Item, Response> {
  /** Puts what is to be said into one message. */
  readonly frameOf: (items: readonly Item[]) => Response;
  /** What an item counts of a message; 1 for an answer of common size. */
  readonly weightOf: (item: Item) => number;
  /** The message that this replica is about to end. */
  readonly goingAway: () => Response;
  readonly attend: (conversation: Conversation<Request, Item>) => Attendant<Request>;
}

/** Who answers on a stream. */
export interface Attendant<Request> {
  /** A message, in the order of arrival. Throws a Fault that ends the stream. */
  heard(request: Request): void;
  /** Whether everything that was asked has been answered. */
  readonly isIdle: boolean;
  /** Its caller is known, and may still call; asked once in a while. */
  stillKnown(principal: Principal): void;
  /** Called once, however the stream has ended. */
  closed(): void;
}

export interface ConversationOptions<Request, Response> {
  readonly call: Call;
  readonly surface: ServerDuplexStream<Unread<Request>, Response>;
  /** Finds out anew who calls; throws, or rejects with, a Fault. */
  readonly identify: () => Principal | Promise<Principal>;
  /** Logs a fault that one answer tells of, where it is the coordinator's. */
  readonly report: (error: unknown) => void;
  /** The stream ends well. */
  readonly done: () => void;
}

/** A caller that is quiet is looked at this often: a stream can outlast its principal. */
const LOOK_EVERY_MS = 1_000;
/** For a caller to notice that the replica is going away, and to close its side. */
const FAREWELL_MS = 1_000;

/**
 * One stream in both directions. Nothing is answered on stale knowledge of who calls (I1); messages are read no faster than
 * answers are; and it ends when its caller has closed its side, or the replica is going away, and all is answered (F26).
 */
export class Conversation<Request, Item> {
  readonly call: Call;
  readonly report: (error: unknown) => void;
  readonly #identify: () => Principal | Promise<Principal>;
  readonly #outbox: Outbox<Item, unknown>;
  readonly #attendant: Attendant<Request>;
  readonly #done: () => void;
  readonly #goAway: () => void;
  readonly #looking: NodeJS.Timeout;
  #leaving: NodeJS.Timeout | undefined;
  /** Nothing more will be asked. */
  #heardAll = false;
  readonly #sent: (() => void)[] = [];
  #isGoingAway = false;
  #isOver = false;

  constructor(talk: Talk<Request, Item, unknown>, options: ConversationOptions<Request, unknown>) {
    const { call, surface } = options;
    this.call = call;
    this.report = options.report;
    this.#identify = options.identify;
    this.#done = options.done;
    this.#goAway = () => surface.write(talk.goingAway());
    this.#outbox = new Outbox({
      surface,
      frameOf: talk.frameOf,
      weightOf: talk.weightOf,
      blocked: (isBlocked) => void (isBlocked ? surface.pause() : surface.resume()),
      emptied: () => this.#emptied(),
      tooSlow: (fault) => call.fail(fault),
    });
    this.#attendant = talk.attend(this);
    this.#looking = setInterval(() => void this.#look(), LOOK_EVERY_MS).unref();
    surface.on('data', (message) => this.#hear(message));
    surface.on('end', () => {
      this.#heardAll = true;
      this.#endWhenDone();
    });
    surface.once('cancelled', () => call.fail(new Error('the caller has gone')));
  }

  /** True: nothing new is begun. */
  get isGoingAway(): boolean {
    return this.#isGoingAway;
  }

  /** Who calls, as of now; throws, or rejects with, a Fault. */
  identify(): Principal | Promise<Principal> {
    const found = this.#identify();
    return found instanceof Promise ? found.then((principal) => this.#same(principal)) : this.#same(found);
  }

  say(item: Item): void {
    this.#outbox.push(item);
  }

  /** Resolves once all that was said is on its way, or there is nobody to say it to: who has much to say waits for it. */
  sent(): Promise<void> {
    if (this.#isOver || this.#outbox.isEmpty) return Promise.resolve();
    return new Promise((resolve) => {
      this.#sent.push(resolve);
    });
  }

  /** Tells the caller to move on; what it has asked is answered. Idempotent. */
  goAway(): void {
    if (this.#isGoingAway || this.#isOver) return;
    this.#isGoingAway = true;
    this.#goAway();
    this.#leaving = setTimeout(() => {
      this.#heardAll = true;
      this.#endWhenDone();
    }, FAREWELL_MS).unref();
  }

  /** Once, when the call has ended in whatever way. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#looking);
    clearTimeout(this.#leaving);
    this.#outbox.close();
    for (const resolve of this.#sent.splice(0)) resolve();
    this.#attendant.closed();
  }

  #hear(message: Unread<Request>): void {
    if (this.#isOver) return;
    try {
      this.#attendant.heard(message.read());
    } catch (error) {
      this.call.fail(error);
    }
  }

  #emptied(): void {
    for (const resolve of this.#sent.splice(0)) resolve();
    this.#endWhenDone();
  }

  #endWhenDone(): void {
    if (this.#heardAll && !this.#isOver && this.#attendant.isIdle && this.#outbox.isEmpty) this.#done();
  }

  async #look(): Promise<void> {
    try {
      const principal = await this.identify();
      if (!this.#isOver) this.#attendant.stillKnown(principal);
    } catch (error) {
      // Who cannot be found out now is asked for again when something is to be decided.
      if (!(error instanceof Fault && error.faultClass === 'unavailable')) this.call.fail(error);
    }
  }

  #same(principal: Principal): Principal {
    if (principal.name === this.call.principal.name) return principal;
    throw new Fault(
      'unauthenticated',
      'PRINCIPAL_CHANGED',
      'what the stream was opened with stands for another principal now; open another one',
    );
  }
}
