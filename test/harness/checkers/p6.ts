import {
  type Answered,
  answered,
  type Call,
  type CallOf,
  type Checker,
  callsOf,
  groupBy,
  type Violation,
} from '../history.js';
import { auditOf } from './audit.js';
import { keyOf } from './knowledge.js';

/**
 * P6: acquire is all or nothing and idempotent. One key, one lease; a key with another request gets nothing; an ended run
 * can never acquire.
 */
export const p6: Checker = (history) => [
  ...oneLeasePerKey(history),
  ...allOrNothing(history),
  ...afterTheStop(history),
  ...auditOf('P6')(history),
];

function granted(history: Parameters<Checker>[0]): Answered<'acquire'>[] {
  return answered(history, 'acquire').filter(({ told }) => told.outcome === 'lease');
}

const leaseOf = ({ told }: Answered<'acquire'>) => (told.outcome === 'lease' ? told.lease : null);

const oneLeasePerKey: Checker = (history) => {
  const violations: Violation[] = [];
  for (const calls of groupBy(granted(history), ({ asked }) => keyOf(asked)).values()) {
    const [first] = calls as [Answered<'acquire'>];
    for (const call of calls.slice(1)) {
      if (leaseOf(call)?.leaseId !== leaseOf(first)?.leaseId)
        violations.push(violation([first, call], 'one key was answered with two leases'));
      else if (JSON.stringify(call.asked.entries) !== JSON.stringify(first.asked.entries))
        violations.push(violation([first, call], 'one key was answered with a lease for two different requests'));
    }
  }
  const keys = groupBy(granted(history), (call) => leaseOf(call)?.leaseId ?? '');
  for (const [leaseId, calls] of keys) {
    const other = calls.find(({ asked }) => keyOf(asked) !== keyOf((calls[0] as Answered<'acquire'>).asked));
    if (other !== undefined)
      violations.push(violation([calls[0] as Answered<'acquire'>, other], `two keys were answered with ${leaseId}`));
  }
  return violations;
};

const allOrNothing: Checker = (history) =>
  granted(history).flatMap((call) => {
    const lease = leaseOf(call);
    // Of a later generation it may have given something up.
    if (lease?.generation !== 1) return [];
    const missing = call.asked.entries.find(
      (asked) =>
        !lease.entries.some(
          ({ resource, access, scope }) =>
            resource === asked.resource && access === asked.access && scope === asked.scope,
        ),
    );
    return missing === undefined ? [] : [violation([call], `granted without ${missing.access} of ${missing.resource}`)];
  });

/** F14: whatever was asked after a stop was answered, or was on its way then, is granted nothing that lives. */
const afterTheStop: Checker = (history) => {
  const stops = groupBy(answered(history, 'stop_run'), ({ asked }) => asked.runId);
  const asked = groupBy(callsOf(history, 'acquire'), (call) => keyOf(call.asked));
  return granted(history).flatMap((call) => {
    const lease = leaseOf(call);
    const stop = stops
      .get(call.asked.runId)
      ?.find((one) => one.answered < firstSent(asked.get(keyOf(call.asked)) ?? []));
    if (stop === undefined || lease?.state !== 'active') return [];
    return [violation([stop, call], `run ${call.asked.runId} was granted a lease that it asked for after its stop`)];
  });
};

function firstSent(calls: readonly CallOf<'acquire'>[]): number {
  return Math.min(...calls.map(({ sent }) => sent));
}

function violation(calls: readonly Pick<Call, 'id' | 'asked' | 'told'>[], what: string): Violation {
  const acquire = calls.at(-1) as Answered<'acquire'>;
  const leases = calls.map((call) => leaseOf(call as Answered<'acquire'>)?.leaseId ?? '');
  return {
    promise: 'P6',
    what: `${what} (run ${acquire.asked.runId}, key ${acquire.asked.key})`,
    calls: calls.map(({ id }) => id),
    revisions: [],
    about: [acquire.asked.runId, ...leases].filter((id) => id !== ''),
  };
}
