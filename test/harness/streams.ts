import { WritError } from '../../src/clients/common/errors.js';
import { NumberedStream } from '../../src/clients/common/numbered-stream.js';
import {
  CheckFenceRequest,
  type CheckFenceResponse,
  type NumberedCheck,
  type NumberedVerdict,
  type StreamFenceChecksRequest,
  type StreamFenceChecksResponse,
} from '../../src/gen/writ/v1/fence_service.js';
import {
  AcquireWriteSetRequest,
  type AcquireWriteSetResponse,
  AmendWriteSetRequest,
  type AmendWriteSetResponse,
  ReleaseLeaseRequest,
  type ReleaseLeaseResponse,
  RenewLeasesRequest,
  type RenewLeasesResponse,
  type SessionAnswer,
  type SessionCall,
  type SessionEvent,
  type SessionRequest,
  type SessionResponse,
} from '../../src/gen/writ/v1/lease_service.js';
import type { Replica } from './cluster.js';

type Asked = NonNullable<SessionCall['call']>;
type Outcome = NonNullable<SessionAnswer['outcome']>;
type Verdict = NonNullable<NumberedVerdict['outcome']>;
type Partial<M extends { fromPartial(partial: never): unknown }> = Parameters<M['fromPartial']>[0];
interface Options {
  readonly timeoutMs: number;
}

const NOTHING: Outcome & Verdict = {
  $case: 'fault',
  value: { code: 13, message: 'an answer without outcome', details: [] },
};

/**
 * One replica's session for all runners of the harness, and its stream of checks for all targets. What cannot be asked
 * there is not asked by a call instead: an answer has come by the stream.
 */
export class Streams {
  private readonly session: NumberedStream<Asked, Outcome, SessionRequest, SessionResponse>;
  private readonly checks: NumberedStream<
    Omit<NumberedCheck, 'number'>,
    Verdict,
    StreamFenceChecksRequest,
    StreamFenceChecksResponse
  >;
  /** Places in the queue, each with what ends the wait for it. */
  private readonly places = new Map<string, { readonly settled: Promise<void>; readonly settle: () => void }>();

  constructor(
    replica: Replica,
    private readonly pushed: (leaseId: string, event: NonNullable<SessionEvent['event']>) => void,
  ) {
    this.session = new NumberedStream({
      open: (signal) => replica.client('runner').lease.session({ signal }),
      requestOf: (questions) => ({
        calls: questions.map(({ number, question }) => ({ number, requestId: '', call: question })),
      }),
      read: (response, answered) => this.read(response, answered),
      ended: () => {
        for (const { settle } of this.places.values()) settle();
        this.places.clear();
      },
    });
    this.checks = new NumberedStream({
      open: (signal) => replica.client('target').fence.streamFenceChecks({ signal }),
      requestOf: (questions) => ({ checks: questions.map(({ number, question }) => ({ number, ...question })) }),
      read({ verdicts, goingAway }, answered) {
        for (const { number, outcome } of verdicts) answered(number, outcome ?? NOTHING);
        return { goingAway };
      },
    });
  }

  acquireWriteSet(request: Partial<typeof AcquireWriteSetRequest>, options: Options): Promise<AcquireWriteSetResponse> {
    const value = AcquireWriteSetRequest.fromPartial(request);
    return this.ask({ $case: 'acquireWriteSet', value }, options);
  }

  renewLeases(request: Partial<typeof RenewLeasesRequest>, options: Options): Promise<RenewLeasesResponse> {
    return this.ask({ $case: 'renewLeases', value: RenewLeasesRequest.fromPartial(request) }, options);
  }

  releaseLease(request: Partial<typeof ReleaseLeaseRequest>, options: Options): Promise<ReleaseLeaseResponse> {
    return this.ask({ $case: 'releaseLease', value: ReleaseLeaseRequest.fromPartial(request) }, options);
  }

  amendWriteSet(request: Partial<typeof AmendWriteSetRequest>, options: Options): Promise<AmendWriteSetResponse> {
    return this.ask({ $case: 'amendWriteSet', value: AmendWriteSetRequest.fromPartial(request) }, options);
  }

  async checkFence(request: Partial<typeof CheckFenceRequest>, { timeoutMs }: Options): Promise<CheckFenceResponse> {
    const question = { check: CheckFenceRequest.fromPartial(request), requestId: '', traceparent: '' };
    const verdict = await this.checks.ask(question, { timeoutMs, silentMs: timeoutMs });
    if (verdict.$case === 'fault') throw WritError.fromFault(verdict.value);
    return verdict.value;
  }

  /** Resolves when something has come of a place in the queue, or nothing is heard of it any more. */
  settled(leaseId: string): Promise<void> {
    return this.places.get(leaseId)?.settled ?? Promise.resolve();
  }

  /** The answer to a call is of the call's kind. */
  private async ask<Answer>(call: Asked, { timeoutMs }: Options): Promise<Answer> {
    const outcome = await this.session.ask(call, { timeoutMs, silentMs: timeoutMs });
    if (outcome.$case === 'fault') throw WritError.fromFault(outcome.value);
    if (outcome.$case !== call.$case) throw new Error(`${call.$case} was answered with ${outcome.$case}`);
    return outcome.value as Answer;
  }

  private read(
    { answers, events, goingAway }: SessionResponse,
    answered: (number: number, outcome: Outcome) => void,
  ): { readonly goingAway: boolean } {
    for (const { number, outcome } of answers) {
      if (outcome?.$case === 'acquireWriteSet' && outcome.value.outcome?.$case === 'waiting')
        this.keep(outcome.value.outcome.value.requestId);
      answered(number, outcome ?? NOTHING);
    }
    for (const { leaseId, event } of events) {
      if (event === undefined) continue;
      this.pushed(leaseId, event);
      if (event.$case !== 'granted' && event.$case !== 'lost' && event.$case !== 'placeMoved') continue;
      this.places.get(leaseId)?.settle();
      this.places.delete(leaseId);
    }
    return { goingAway };
  }

  private keep(leaseId: string): void {
    let settle: () => void = () => undefined;
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.places.get(leaseId)?.settle();
    this.places.set(leaseId, { settled, settle });
  }
}
