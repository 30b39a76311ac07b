import type { FreezeDecision, ThawDecision } from '../../domain/decide/freezes.js';
import * as wire from '../../gen/writ/v1/lease_service.js';
import { RequestReader, toTimestamp } from '../messages/convert.js';
import { toFreezes } from '../messages/views.js';
import type { UnaryMethods } from './method.js';

type Methods = Pick<UnaryMethods<wire.LeaseServiceServer>, 'freeze' | 'thaw' | 'listFreezes'>;

const FREEZE_OUTCOME_TO_WIRE: Readonly<Record<FreezeDecision['outcome'], wire.FreezeOutcome>> = {
  frozen: wire.FreezeOutcome.FREEZE_OUTCOME_FROZEN,
  already_frozen: wire.FreezeOutcome.FREEZE_OUTCOME_ALREADY_FROZEN,
  strengthened: wire.FreezeOutcome.FREEZE_OUTCOME_STRENGTHENED,
};

const THAW_OUTCOME_TO_WIRE: Readonly<Record<ThawDecision['outcome'], wire.ThawOutcome>> = {
  thawed: wire.ThawOutcome.THAW_OUTCOME_THAWED,
  not_frozen: wire.ThawOutcome.THAW_OUTCOME_NOT_FROZEN,
};

/** The methods of LeaseService about freezes. */
export const freezeMethods: Methods = {
  freeze: async (api, call, request) => {
    const reader = new RequestReader();
    const scope = reader.freezeScope(request.scope, 'scope');
    const until = request.until === undefined ? null : reader.timestamp(request.until, 'until');
    reader.done();
    const { namespace, pattern, denyChecks: deniesChecks, reason } = request;
    const input = { pattern, scope, deniesChecks, until, reason };
    const { value, revision } = await api.freeze(call.within(namespace), input);
    const [freeze] = toFreezes([value.freeze], call.principal);
    return {
      outcome: FREEZE_OUTCOME_TO_WIRE[value.outcome],
      freeze,
      effectiveAt: toTimestamp(value.freeze.effectiveAt),
      liveLeases: value.liveLeases,
      waitingRequests: value.waitingRequests,
      kinds: value.kinds.slice(),
      logRevision: BigInt(revision),
    };
  },
  thaw: async (api, call, request) => {
    const { namespace, pattern, reason } = request;
    const { value, revision } = await api.thaw(call.within(namespace), { pattern, reason });
    const [freeze] = toFreezes(value.freeze === null ? [] : [value.freeze], call.principal);
    return {
      outcome: THAW_OUTCOME_TO_WIRE[value.outcome],
      freeze,
      stillFrozenBy: toFreezes(value.stillFrozenBy, call.principal),
      granted: value.granted,
      logRevision: BigInt(revision),
    };
  },
  listFreezes: async (api, call, request) => {
    const reader = new RequestReader();
    const page = reader.page(request.page, 'page');
    reader.done();
    const { namespace, resource } = request;
    const { value, revision } = await api.listFreezes(call.within(namespace), { resource, page });
    const freezes = toFreezes(value.items, call.principal);
    return { freezes, nextPageToken: value.nextToken, logRevision: BigInt(revision) };
  },
};
