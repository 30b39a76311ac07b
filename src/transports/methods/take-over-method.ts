import type * as wire from '../../gen/writ/v1/lease_service.js';
import { toOptionalTimestamp } from '../messages/convert.js';
import { fromAcquire, toEndedLease, toOutcome } from '../messages/lease-messages.js';
import { MAX_OPEN_WRITES, toOpenWrite } from '../messages/open-writes.js';
import type { RefusalViews } from '../messages/views.js';
import type { UnaryMethods } from './method.js';

/** TakeOver of LeaseService. */
export function takeOverMethod(views: RefusalViews): Pick<UnaryMethods<wire.LeaseServiceServer>, 'takeOver'> {
  return {
    takeOver: async (api, call, request) => {
      const { reason, acceptOverlap: acceptsOverlap } = request;
      const input = { ...fromAcquire({ ...request, audiences: [], delegatedFrom: '' }, ''), reason, acceptsOverlap };
      const { value, revision, now } = await api.takeOver(call.within(request.namespace), input);
      const { outcome, ended } = value;
      return {
        outcome: toOutcome({ value: outcome, revision, now }, call.principal, views),
        logRevision: BigInt(revision),
        ended: ended.leases.map(toEndedLease),
        effectiveAt: toOptionalTimestamp(ended.effectiveAt),
        openWrites: ended.openWrites.slice(0, MAX_OPEN_WRITES).map((write) => toOpenWrite(write)),
      };
    },
  };
}
