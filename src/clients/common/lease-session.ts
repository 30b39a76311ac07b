import type {
  SessionAnswer,
  SessionCall,
  SessionEvent,
  SessionRequest,
  SessionResponse,
} from '../../gen/writ/v1/lease_service.js';
import type { WritClient } from './connect.js';
import { type AskOptions, NumberedStream } from './numbered-stream.js';

export type SessionQuestion = NonNullable<SessionCall['call']>;
export type SessionOutcome = NonNullable<SessionAnswer['outcome']>;
export type Happened = NonNullable<SessionEvent['event']>;

/** How a wait went on: `told` that something came of the place, or not, as the session has ended or the place is another's. */
export type Settled = 'told' | 'lost';

/** One Session stream, and the places in the queue that it keeps. */
export class LeaseSession {
  private readonly stream: NumberedStream<SessionQuestion, SessionOutcome, SessionRequest, SessionResponse>;
  /** Until something comes of them. */
  private readonly places = new Map<string, { readonly settled: Promise<Settled>; settle(how: Settled): void }>();

  constructor(
    open: WritClient['lease']['session'],
    /** Hears what is pushed about leases. */
    private readonly happened: (leaseId: string, event: Happened) => void,
  ) {
    this.stream = new NumberedStream({
      open: (signal) => open({ signal }),
      requestOf: (questions) => ({
        calls: questions.map(({ number, question }) => ({ number, requestId: '', call: question })),
      }),
      read: (response, answered) => this.read(response, answered),
      ended: () => {
        for (const leaseId of [...this.places.keys()]) this.settle(leaseId, 'lost');
      },
    });
  }

  /** Rejects with StreamLost where it is to be asked in another way. */
  ask(question: SessionQuestion, times: AskOptions, signal?: AbortSignal): Promise<SessionOutcome> {
    return this.stream.ask(question, times, signal);
  }

  /** Resolves when there is reason to ask again about a place; undefined: the session keeps none of this id. */
  settled(leaseId: string): Promise<Settled> | undefined {
    return this.places.get(leaseId)?.settled;
  }

  private read(
    { answers, events, goingAway }: SessionResponse,
    answered: (number: number, outcome: SessionOutcome) => void,
  ): { readonly goingAway: boolean } {
    for (const { number, outcome } of answers) {
      if (outcome?.$case === 'acquireWriteSet' && outcome.value.outcome?.$case === 'waiting')
        this.keep(outcome.value.outcome.value.requestId);
      answered(number, outcome ?? NO_OUTCOME);
    }
    for (const { leaseId, event } of events) {
      if (event === undefined) continue;
      if (event.$case === 'granted' || event.$case === 'lost') this.settle(leaseId, 'told');
      if (event.$case === 'placeMoved') this.settle(leaseId, 'lost');
      this.happened(leaseId, event);
    }
    return { goingAway };
  }

  /** Whoever waited for the same place before is told to ask again. */
  private keep(leaseId: string): void {
    let settle: (how: Settled) => void = () => undefined;
    const settled = new Promise<Settled>((resolve) => {
      settle = resolve;
    });
    this.settle(leaseId, 'lost');
    this.places.set(leaseId, { settled, settle });
  }

  private settle(leaseId: string, how: Settled): void {
    this.places.get(leaseId)?.settle(how);
    this.places.delete(leaseId);
  }
}

/** Something that this client does not know. */
const NO_OUTCOME: SessionOutcome = {
  $case: 'fault',
  value: { code: 13, message: 'an answer without outcome', details: [] },
};
