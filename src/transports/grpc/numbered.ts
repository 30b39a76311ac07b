import type { Principal } from '../../auth/principal.js';
import { Fault } from '../../domain/fault.js';
import type * as types from '../../gen/writ/v1/types.js';
import type { Attendant, Conversation } from './conversation.js';
import { toWireFault } from './status.js';

/** Asked on one stream and not answered. */
const MAX_UNANSWERED = 1_024;

/** One thing that was asked. */
export interface Asked<Question> {
  readonly number: number;
  readonly question: Question;
}

const NUMBER_IN_USE = (number: number): Fault =>
  new Fault(
    'invalid_argument',
    'NUMBER_IN_USE',
    `the number ${number} is of something that is not answered yet, so answers could not be told apart; count on`,
  );

const TOO_MANY = new Fault(
  'resource_exhausted',
  'TOO_MANY_UNANSWERED',
  `${MAX_UNANSWERED} messages of this stream are unanswered; send more when some of them are answered`,
);

const GOING_AWAY = new Fault(
  'unavailable',
  'SHUTTING_DOWN',
  'this coordinator is shutting down and has not looked at this; ask another replica',
);

/**
 * Answers what is asked by numbers on one stream. What arrives in one turn of the event loop is answered for together, so
 * that it costs one look at who calls, and a fault of one question is nothing to the others.
 */
export abstract class NumberedCalls<Request, Question, Item> implements Attendant<Request> {
  readonly #unanswered = new Set<number>();
  #asked: Asked<Question>[] = [];

  constructor(protected readonly conversation: Conversation<Request, Item>) {}

  abstract heard(request: Request): void;
  /** Answers each of them, by and by; `principal` is who calls at this moment. */
  protected abstract answer(asked: readonly Asked<Question>[], principal: Principal): void;
  /** How a fault is told. */
  protected abstract faultOf(number: number, fault: types.Fault): Item;
  abstract stillKnown(principal: Principal): void;
  abstract closed(): void;

  get isIdle(): boolean {
    return this.#unanswered.size === 0;
  }

  protected ask(number: number, question: Question): void {
    const unanswered = this.#unanswered;
    if (unanswered.has(number)) throw NUMBER_IN_USE(number);
    if (this.conversation.isGoingAway) this.#refuse(number, GOING_AWAY);
    else if (unanswered.size >= MAX_UNANSWERED) this.#refuse(number, TOO_MANY);
    else {
      unanswered.add(number);
      this.#asked.push({ number, question });
      if (this.#asked.length === 1) setImmediate(() => this.#answerAll());
    }
  }

  protected answered(number: number, item: Item): void {
    if (this.#unanswered.delete(number)) this.conversation.say(item);
  }

  protected failed(number: number, error: unknown): void {
    if (this.#unanswered.delete(number)) this.#refuse(number, error);
  }

  #answerAll(): void {
    const asked = this.#asked;
    this.#asked = [];
    const refuseAll = (error: unknown): void => {
      const isUnknown = !(error instanceof Fault && error.faultClass === 'unavailable');
      if (isUnknown) this.conversation.call.fail(error);
      else for (const { number } of asked) this.failed(number, error);
    };
    try {
      const found = this.conversation.identify();
      if (found instanceof Promise) found.then((principal) => this.answer(asked, principal)).catch(refuseAll);
      else this.answer(asked, found);
    } catch (error) {
      refuseAll(error);
    }
  }

  #refuse(number: number, error: unknown): void {
    this.conversation.report(error);
    this.conversation.say(this.faultOf(number, toWireFault(error, this.conversation.call.requestId)));
  }
}
