import { WritError } from '../../src/clients/common/errors.js';
import { type Happened, LeaseSession, type SessionQuestion } from '../../src/clients/common/lease-session.js';
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
} from '../../src/gen/writ/v1/lease_service.js';
import type { Replica } from './cluster.js';

type Verdict = NonNullable<NumberedVerdict['outcome']>;
type Partial<M extends { fromPartial(partial: never): unknown }> = Parameters<M['fromPartial']>[0];
interface Options {
  readonly timeoutMs: number;
}

const NOTHING: Verdict = { $case: 'fault', value: { code: 13, message: 'an answer without outcome', details: [] } };

/**
 * One replica's session for all runners of the harness, and its stream of checks for all targets. What cannot be asked
 * there is not asked by a call instead: an answer has come by the stream.
 */
export class Streams {
  private readonly session: LeaseSession;
  private readonly checks: NumberedStream<
    Omit<NumberedCheck, 'number'>,
    Verdict,
    StreamFenceChecksRequest,
    StreamFenceChecksResponse
  >;

  constructor(replica: Replica, pushed: (leaseId: string, event: Happened) => void) {
    this.session = new LeaseSession((options) => replica.client('runner').lease.session(options), pushed);
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
  async settled(leaseId: string): Promise<void> {
    await this.session.settled(leaseId);
  }

  /** The answer to a call is of the call's kind. */
  private async ask<Answer>(call: SessionQuestion, { timeoutMs }: Options): Promise<Answer> {
    const outcome = await this.session.ask(call, { timeoutMs, silentMs: timeoutMs });
    if (outcome.$case === 'fault') throw WritError.fromFault(outcome.value);
    if (outcome.$case !== call.$case) throw new Error(`${call.$case} was answered with ${outcome.$case}`);
    return outcome.value as Answer;
  }
}
