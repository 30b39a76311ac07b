import type { Principal } from '../../auth/principal.js';
import { authorize, type Method } from '../../auth/roles.js';
import { invalidArgument } from '../../domain/fault.js';
import type * as wire from '../../gen/writ/v1/lease_service.js';
import type * as types from '../../gen/writ/v1/types.js';
import type { CallContext, LeaseSession, SessionEvent, WritApi } from '../../services/api.js';
import { toDuration, toEndReason, toOptionalTimestamp, toTimestamp } from '../messages/convert.js';
import { toAudienceCredential } from '../messages/credential-messages.js';
import * as messages from '../messages/lease-messages.js';
import { type RefusalViews, toLease } from '../messages/views.js';
import { leaseMethods } from '../methods/lease-methods.js';
import type { Unary, UnaryMethods } from '../methods/method.js';
import { namespaceOf } from '../namespace-of.js';
import type { RateLimiter } from '../rate-limit.js';
import type { Conversation, Talk } from './conversation.js';
import { checkRequestId } from './metadata.js';
import { type Asked, NumberedCalls } from './numbered.js';

/** One thing to say. */
type Item =
  | { readonly kind: 'answer'; readonly answer: wire.SessionAnswer }
  | { readonly kind: 'event'; readonly event: wire.SessionEvent };
type Outcome = NonNullable<wire.SessionAnswer['outcome']>;
type Call = NonNullable<wire.SessionCall['call']>;
/** Calls that a session knows nothing of. */
type Carried = Exclude<Call, { $case: 'acquireWriteSet' | 'renewLeases' | 'releaseLease' }>;

const METHODS: Readonly<Record<Carried['$case'], Method>> = {
  amendWriteSet: 'LeaseService/AmendWriteSet',
  revokeLease: 'LeaseService/RevokeLease',
  takeOver: 'LeaseService/TakeOver',
  getLease: 'LeaseService/GetLease',
  listLeases: 'LeaseService/ListLeases',
  previewWriteSet: 'LeaseService/PreviewWriteSet',
  findBlockers: 'LeaseService/FindBlockers',
  listInDoubt: 'LeaseService/ListInDoubt',
  settleInDoubt: 'LeaseService/SettleInDoubt',
  freeze: 'LeaseService/Freeze',
  thaw: 'LeaseService/Thaw',
  listFreezes: 'LeaseService/ListFreezes',
};

/** LeaseService.Session: a runner's calls and what happens to its leases, on one stream. */
export function sessionTalk(
  api: WritApi,
  rateLimiter: RateLimiter,
  views: RefusalViews,
): Talk<wire.SessionRequest, Item, wire.SessionResponse> {
  const methods = leaseMethods(views);
  return {
    frameOf: (items) => ({
      answers: items.flatMap((item) => (item.kind === 'answer' ? [item.answer] : [])),
      events: items.flatMap((item) => (item.kind === 'event' ? [item.event] : [])),
      goingAway: false,
    }),
    weightOf,
    goingAway: () => ({ answers: [], events: [], goingAway: true }),
    attend: (conversation) => new SessionCalls(conversation, api, rateLimiter, views, methods),
  };
}

const BYTES_OF_COMMON_SIZE = 1_024;

/** Leases, refusals and lists have as many parts as their resources: a few of them fill a message. */
function weightOf(item: Item): number {
  return Math.max(1, bytesIn(item) / BYTES_OF_COMMON_SIZE);
}

/** At most so many, about, whatever it is. */
function bytesIn(part: unknown): number {
  if (typeof part === 'string') return 3 * part.length + 2;
  if (typeof part !== 'object' || part === null) return 10;
  if (part instanceof Uint8Array) return part.length + 2;
  let bytes = 2;
  for (const inner of Object.values(part)) bytes += bytesIn(inner);
  return bytes;
}

class SessionCalls extends NumberedCalls<wire.SessionRequest, wire.SessionCall, Item> {
  readonly #api: WritApi;
  readonly #rateLimiter: RateLimiter;
  readonly #views: RefusalViews;
  readonly #methods: UnaryMethods<wire.LeaseServiceServer>;
  readonly #session: LeaseSession;
  /** Where it was let in: there it must stay so. */
  readonly #namespaces = new Set<string>();
  readonly #untold: SessionEvent[] = [];
  #isTelling = false;

  constructor(
    conversation: Conversation<wire.SessionRequest, Item>,
    api: WritApi,
    rateLimiter: RateLimiter,
    views: RefusalViews,
    methods: UnaryMethods<wire.LeaseServiceServer>,
  ) {
    super(conversation);
    this.#api = api;
    this.#rateLimiter = rateLimiter;
    this.#views = views;
    this.#methods = methods;
    this.#session = api.openSession({
      happened: (event) => this.#push(event),
      failed: (fault) => conversation.call.fail(fault),
    });
  }

  heard({ calls }: wire.SessionRequest): void {
    for (const call of calls) this.ask(call.number, call);
  }

  stillKnown(principal: Principal): void {
    authorize(principal, 'LeaseService/Session', null);
    for (const namespace of this.#namespaces) authorize(principal, 'LeaseService/Session', namespace);
  }

  closed(): void {
    this.#session.close();
  }

  protected answer(asked: readonly Asked<wire.SessionCall>[], principal: Principal): void {
    for (const { number, question } of asked) {
      this.#answerOne(question, principal).then(
        (outcome) => this.answered(number, { kind: 'answer', answer: { number, outcome } }),
        (error: unknown) => this.failed(number, error),
      );
    }
  }

  protected faultOf(number: number, fault: types.Fault): Item {
    return { kind: 'answer', answer: { number, outcome: { $case: 'fault', value: fault } } };
  }

  async #answerOne({ call, requestId }: wire.SessionCall, caller: Principal): Promise<Outcome> {
    this.#rateLimiter.take(caller.name);
    if (call === undefined)
      throw invalidArgument([{ field: 'call', description: 'is required: one that this coordinator knows' }]);
    checkRequestId(requestId);
    const session = this.#session;
    switch (call.$case) {
      case 'acquireWriteSet': {
        const context = this.#context('LeaseService/AcquireWriteSet', call.value, requestId, caller);
        const answer = await session.acquire(context, messages.fromAcquire(call.value, ''));
        this.#namespaces.add(context.namespace);
        return { $case: call.$case, value: messages.toAcquireAnswer(answer, context.principal, this.#views) };
      }
      case 'renewLeases': {
        const context = this.#context('LeaseService/RenewLeases', call.value, requestId, caller);
        const answer = await session.renew(context, messages.fromRenew(call.value));
        this.#namespaces.add(context.namespace);
        return { $case: call.$case, value: messages.toRenewAnswer(answer, context.principal, this.#views) };
      }
      case 'releaseLease': {
        const context = this.#context('LeaseService/ReleaseLease', call.value, requestId, caller);
        const answer = await session.release(context, messages.fromRelease(call.value));
        return { $case: call.$case, value: messages.toReleaseAnswer(answer) };
      }
      default:
        return this.#carry(call, requestId, caller);
    }
  }

  /** What is on a session as it is by itself. */
  async #carry(call: Carried, requestId: string, caller: Principal): Promise<Outcome> {
    const context = this.#context(METHODS[call.$case], call.value, requestId, caller);
    // Each is the method of its own request.
    const method = this.#methods[call.$case] as Unary<unknown, unknown>;
    const value = await method(this.#api, { ...context, within: () => context }, call.value);
    return { $case: call.$case, value } as Outcome;
  }

  /** Let in as on a call of its own. */
  #context(method: Method, request: object, requestId: string, caller: Principal): CallContext {
    const namespace = namespaceOf(method, request) ?? '';
    const { call } = this.conversation;
    return {
      principal: authorize(caller, method, namespace),
      namespace,
      requestId: requestId === '' ? call.requestId : requestId,
      deadlineMs: null,
      signal: call.signal,
    };
  }

  #push(event: SessionEvent): void {
    this.#untold.push(event);
    if (!this.#isTelling) void this.#tell();
  }

  /**
   * Nothing is told on stale knowledge of who listens. To find that out can take a while, and longer for one event than for
   * the next: they wait for each other, or a lease would be granted after it was lost.
   */
  async #tell(): Promise<void> {
    this.#isTelling = true;
    try {
      for (let event = this.#untold.shift(); event !== undefined; event = this.#untold.shift()) {
        const found = this.conversation.identify();
        const caller = found instanceof Promise ? await found : found;
        const principal = authorize(caller, 'LeaseService/Session', event.namespace);
        this.conversation.say({ kind: 'event', event: this.#toEvent(event, principal) });
      }
    } catch (error) {
      this.conversation.call.fail(error);
    }
    this.#isTelling = false;
  }

  #toEvent(event: SessionEvent, viewer: Principal): wire.SessionEvent {
    const { namespace, leaseId } = event;
    return { namespace, leaseId, event: toWireEvent(event, viewer, this.#views) };
  }
}

function toWireEvent(event: SessionEvent, viewer: Principal, views: RefusalViews): wire.SessionEvent['event'] {
  switch (event.kind) {
    case 'granted': {
      const { lease, credentials, revision, now } = event;
      const issued = credentials.map((outcome) => toAudienceCredential(outcome, viewer, views));
      return {
        $case: 'granted',
        value: { lease: toLease(lease, now), credentials: issued, logRevision: BigInt(revision) },
      };
    }
    case 'jeopardy':
      return {
        $case: 'jeopardy',
        value: { validUntil: toTimestamp(event.validUntil), validFor: toDuration(event.validFor) },
      };
    case 'safe':
      return { $case: 'safe', value: { validUntil: toTimestamp(event.validUntil) } };
    case 'lost': {
      const { endReason, endedAt, refusal } = event;
      return {
        $case: 'lost',
        value: {
          endReason: toEndReason(endReason),
          endedAt: toOptionalTimestamp(endedAt),
          ...(refusal === null ? {} : { refusal: views.refusal(refusal, viewer) }),
        },
      };
    }
    case 'asked_to_yield':
      return { $case: 'askedToYield', value: { resource: event.resource } };
    case 'input_changed':
      return {
        $case: 'inputChanged',
        value: { resource: event.resource, changedAt: toTimestamp(event.changedAt) },
      };
    case 'place_moved':
      return { $case: 'placeMoved', value: {} };
  }
}
