import type { ReportedWrite } from '../../domain/admission.js';
import type { Confirmation } from '../../domain/credential.js';
import type { ReportOutcome } from '../../domain/decide/report-writes.js';
import type { FenceReason, FenceVerdict, ProtectedWrite } from '../../domain/fence.js';
import type { ReportedOverride } from '../../domain/override.js';
import type { Micros } from '../../domain/time.js';
import type { FenceWatch, WatchFencesInput } from '../fence-watches.js';
import type { PresentedHeaders } from '../presented-write.js';
import type { RouteProblem } from '../route-problem.js';
import type { At, CallContext, Outcome } from './calls.js';

/** One of many checks. */
export interface MadeCheck {
  readonly context: CallContext;
  readonly input: CheckFenceInput;
}

export interface CheckFenceInput {
  /** Empty when a credential is given. */
  readonly leaseId: string;
  /** Presented in place of the lease id; absent or empty: none. */
  readonly credential?: string;
  /** The key that the presenter proved to have; absent: none. */
  readonly presenter?: Confirmation | null;
  readonly presenterRunId: string;
  readonly writes: readonly ProtectedWrite[];
  readonly requestId: string;
}

/** A request to a service, as the gateway in front of it tells; every value that was sent, to see what can be read in two ways. */
export interface RouteCheckInput {
  readonly method: readonly string[];
  readonly host: readonly string[];
  /** Path and query as they were sent, still escaped. */
  readonly target: readonly string[];
  readonly presented: PresentedHeaders;
  /** The key that the gateway saw proved; null: none. */
  readonly presenter: Confirmation | null;
  /** The gateway's own id of the request, never the client's: by it a check that it repeats is known. Absent: it has none. */
  readonly attemptId?: string;
}

/** Whether a request may go through to the service. */
export type RouteAnswer =
  | {
      readonly allowed: true;
      /** `reads` and `unprotected`: the route needs no check. Of an `observe` kind, what `enforce` would have answered. */
      readonly reason: FenceReason | 'reads' | 'unprotected';
      readonly observedOnly: boolean;
      readonly runId: string | null;
      /** The authorization is a credential of Writ, which is not for the service to see. */
      readonly credentialPresented: boolean;
      /** Null: no check was made. */
      readonly revision: number | null;
      readonly validFor: Micros | null;
      /** Of the tracked writes, in their order: what becomes of each has to be reported. */
      readonly admissionIds: readonly string[];
    }
  | { readonly allowed: false; readonly problem: RouteProblem; readonly revision: number | null };

/** The verdict, and the admissions of what is tracked. */
export interface CheckedFence extends FenceVerdict {
  /** One per write; empty: its action is not tracked. Absent: nothing that is allowed is. */
  readonly admissionIds?: readonly string[];
}

export interface ReportWriteInput {
  /** Of the check. Empty: a credential is given, or each write names its admission. */
  readonly leaseId: string;
  /** Of the check, in place of the lease id; empty: none. */
  readonly credential: string;
  /** Of the check. */
  readonly requestId: string;
  readonly detail: string;
  readonly writes: readonly Omit<ReportedWrite, 'contradicts'>[];
}

/** Fence checks, for services and for gateways, and what services report. */
export interface FenceApi {
  checkFence(context: CallContext, input: CheckFenceInput): Promise<At<CheckedFence>>;
  /** Many of them, of one caller in one namespace; `told` is called once for each, by and by. Never rejects. */
  checkFences(
    checks: readonly MadeCheck[],
    told: (index: number, outcome: Outcome<CheckedFence>) => void,
  ): Promise<void>;
  checkRoute(context: CallContext, input: RouteCheckInput): Promise<RouteAnswer>;
  reportWrite(context: CallContext, input: ReportWriteInput): Promise<At<readonly ReportOutcome[]>>;
  reportOverride(
    context: CallContext,
    input: Omit<ReportedOverride, 'notOwned'>,
  ): Promise<At<{ alreadyReported: boolean }>>;
  /** What the caller pulls from until it closes it. */
  watchFences(context: CallContext, input: WatchFencesInput): Promise<FenceWatch>;
}
