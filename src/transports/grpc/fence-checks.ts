import type { Principal } from '../../auth/principal.js';
import { authorize } from '../../auth/roles.js';
import { invalidArgument } from '../../domain/fault.js';
import type * as wire from '../../gen/writ/v1/fence_service.js';
import type * as types from '../../gen/writ/v1/types.js';
import { type ServerSpan, startServerSpan } from '../../platform/tracing.js';
import type { CallContext, MadeCheck, WritApi } from '../../services/api.js';
import { fromCheck, toCheckAnswer } from '../messages/fence-messages.js';
import { orDefault } from '../namespace-of.js';
import type { RateLimiter } from '../rate-limit.js';
import type { Conversation, Talk } from './conversation.js';
import { checkRequestId } from './metadata.js';
import { type Asked, NumberedCalls } from './numbered.js';

/** StreamFenceChecks: each check is decided, limited and recorded as one that is made by itself. */
export function fenceChecks(
  api: WritApi,
  rateLimiter: RateLimiter,
): Talk<wire.StreamFenceChecksRequest, wire.NumberedVerdict, wire.StreamFenceChecksResponse> {
  return {
    frameOf: (verdicts) => ({ verdicts: verdicts.slice(), goingAway: false }),
    weightOf: ({ outcome }) => (outcome?.$case === 'verdict' ? outcome.value.results.length : 1),
    goingAway: () => ({ verdicts: [], goingAway: true }),
    attend: (conversation) => new FenceChecks(conversation, api, rateLimiter),
  };
}

const METHOD = 'FenceService/StreamFenceChecks';
/** As that of a check by itself. */
const CHECK_SPAN = 'writ.v1.FenceService/CheckFence';

/** Checks of one namespace. */
interface Together {
  readonly context: CallContext;
  readonly numbers: number[];
  readonly checks: MadeCheck[];
}

class FenceChecks extends NumberedCalls<wire.StreamFenceChecksRequest, wire.NumberedCheck, wire.NumberedVerdict> {
  readonly #api: WritApi;
  readonly #rateLimiter: RateLimiter;
  /** Of checks that are part of a trace. */
  readonly #spans = new Map<number, ServerSpan>();

  constructor(
    conversation: Conversation<wire.StreamFenceChecksRequest, wire.NumberedVerdict>,
    api: WritApi,
    rateLimiter: RateLimiter,
  ) {
    super(conversation);
    this.#api = api;
    this.#rateLimiter = rateLimiter;
  }

  heard({ checks }: wire.StreamFenceChecksRequest): void {
    for (const check of checks) this.ask(check.number, check);
  }

  stillKnown(principal: Principal): void {
    authorize(principal, METHOD, null);
  }

  closed(): void {
    // What is under way is decided and recorded; there is nobody to tell.
  }

  protected answer(asked: readonly Asked<wire.NumberedCheck>[], principal: Principal): void {
    const byNamespace = new Map<string, Together>();
    for (const { number, question } of asked) {
      try {
        this.#rateLimiter.take(principal.name);
        const { check, requestId, traceparent } = question;
        if (check === undefined) throw invalidArgument([{ field: 'check', description: 'is required' }]);
        checkRequestId(requestId);
        let together = byNamespace.get(check.namespace);
        if (together === undefined) {
          together = { context: this.#contextIn(check.namespace, principal), numbers: [], checks: [] };
          byNamespace.set(check.namespace, together);
        }
        const context = requestId === '' ? together.context : { ...together.context, requestId };
        together.checks.push({ context, input: fromCheck(check) });
        together.numbers.push(number);
        if (traceparent !== '') this.#spans.set(number, startServerSpan(CHECK_SPAN, traceparent));
      } catch (error) {
        this.failed(number, error);
      }
    }
    for (const together of byNamespace.values()) this.#decide(together);
  }

  protected faultOf(number: number, fault: types.Fault): wire.NumberedVerdict {
    return { number, outcome: { $case: 'fault', value: fault } };
  }

  #contextIn(namespace: string, caller: Principal): CallContext {
    const principal = authorize(caller, METHOD, orDefault(namespace));
    const { requestId, signal } = this.conversation.call;
    return { principal, namespace, requestId, deadlineMs: null, signal };
  }

  #decide({ numbers, checks }: Together): void {
    this.#api.checkFences(checks, (index, outcome) => {
      const number = numbers[index] as number;
      this.#endSpan(number, checks[index]?.context.requestId ?? '', outcome.ok);
      if (outcome.ok)
        this.answered(number, { number, outcome: { $case: 'verdict', value: toCheckAnswer(outcome.answer) } });
      else this.failed(number, outcome.error);
    });
  }

  #endSpan(number: number, requestId: string, isVerdict: boolean): void {
    const span = this.#spans.get(number);
    if (span === undefined) return;
    this.#spans.delete(number);
    span.end({ 'rpc.system': 'grpc', 'rpc.method': METHOD, 'writ.request_id': requestId }, !isVerdict);
  }
}
