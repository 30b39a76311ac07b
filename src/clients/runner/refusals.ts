import type { Blocker, Refusal } from '../../gen/writ/v1/types.js';
import { durationMs } from '../common/time.js';
import { kindName } from './errors.js';
import { accessWord, scopeWord } from './write-set.js';

const COURSES = {
  held: 'wait',
  lock_delay: 'wait',
  wait_timeout: 'wait',
  limit: 'wait',
  in_doubt: 'wait',
  frozen: 'wait',
  already_held: 'give_back',
  deadlock: 'give_back',
  undescribed: 'propose',
  propose_only: 'propose',
  outside_contract: 'ask',
  forbidden: 'ask',
  approval_required: 'ask',
  run_blocked: 'ask',
  rehearsal_required: 'ask',
  ended: 'stop',
  run_ended: 'stop',
} as const;

/** The kinds of refusal that this kit knows. */
export type AcquireRefusalKind = keyof typeof COURSES;
/**
 * What a refusal of an acquire asks for. None of them is "try the same at once":
 * - `wait`: it can be had later; ask again with `waitMs`, by a new key, and read anew what the work rests on;
 * - `give_back`: the run itself is in the way: release, or use, what it holds;
 * - `propose`: the write set may not be written by a run; hand in a proposal, or work under the kind's sandbox path;
 * - `ask`: a person must do something first, see `resolution`;
 * - `stop`: this run will get nothing any more by asking.
 */
export type Course = (typeof COURSES)[AcquireRefusalKind] | 'ask';

interface RefusalDetails {
  /** What happened, to which resource, in one or two sentences. */
  readonly message: string;
  /** The entry's resource it is about; empty when it is about none in particular. */
  readonly resource: string;
  /** What stands in the way, at most 16; another run only by an opaque name. */
  readonly blockers: readonly RefusalBlocker[];
  /** Earliest time at which it can be had, if nobody renews; undefined: not known, or waiting does not help. */
  readonly retryAfterMs: number | undefined;
  /** Entries of the request that could be granted now, if asked for without the rest. */
  readonly grantable: readonly { readonly resource: string; readonly actions: readonly string[] }[];
  readonly resolution: {
    /** What to do next, in one sentence. */
    readonly action: string;
    /** Who can: `runner`, `operator`, `admin`, or a resolver of the conflict map. */
    readonly who: string;
    /** The same request can succeed later without anybody changing anything else. */
    readonly retryable: boolean;
  };
}

/** What a request met. */
export interface RefusalBlocker {
  /** An opaque name of the lease in the way, the same for the same lease. Operators find the lease by it. */
  readonly ref: string;
  /** What it holds or waits for. */
  readonly resource: string;
  /** The entry of the request that meets it. */
  readonly requestedResource: string;
  readonly access: 'read' | 'stable_read' | 'write';
  readonly scope: 'exact' | 'subtree';
  /** True: it waits ahead in the queue; false: it holds the resource, or keeps it closed by a lock delay. */
  readonly waiting: boolean;
  /** The rule of the conflict map by which they meet; empty: both name the resource. */
  readonly rule: string;
  /** Who can settle it, by name; empty: nobody is named. */
  readonly resolver: string;
}

/** A refusal of an acquire by its kind, with the course that its kind asks for. */
export type AcquireRefusal =
  | {
      [K in AcquireRefusalKind]: { readonly kind: K; readonly course: (typeof COURSES)[K] } & RefusalDetails;
    }[AcquireRefusalKind]
  /** A kind that a newer coordinator knows and this kit does not: a person should look. */
  | ({ readonly kind: 'unknown'; readonly course: 'ask' } & RefusalDetails);

/**
 * The refusal in a form to branch on.
 *
 * @example
 * const { course, resolution } = toAcquireRefusal(error.refusal);
 * if (course === 'ask') await tell(resolution.who, resolution.action);
 */
export function toAcquireRefusal(refusal: Refusal): AcquireRefusal {
  const kind = kindName(refusal.kind);
  const { resolution } = refusal;
  const details: RefusalDetails = {
    message: refusal.message,
    resource: refusal.resource,
    blockers: refusal.blockers.map(toBlocker),
    retryAfterMs: durationMs(refusal.retryAfter),
    grantable: refusal.grantable.map(({ resource, actions }) => ({ resource, actions })),
    resolution: {
      action: resolution?.action ?? '',
      who: resolution?.who ?? '',
      retryable: resolution?.retryable ?? false,
    },
  };
  if (!isKnown(kind)) return { kind: 'unknown', course: 'ask', ...details };
  return { kind, course: COURSES[kind], ...details } as AcquireRefusal;
}

function isKnown(kind: string): kind is AcquireRefusalKind {
  return Object.hasOwn(COURSES, kind);
}

function toBlocker(blocker: Blocker): RefusalBlocker {
  return {
    ref: blocker.blockerRef,
    resource: blocker.resource,
    requestedResource: blocker.requestedResource,
    access: accessWord(blocker.access),
    scope: scopeWord(blocker.scope),
    waiting: blocker.waiting,
    rule: blocker.rule,
    resolver: blocker.resolver,
  };
}
