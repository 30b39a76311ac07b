import { type Call, type Checker, callsOf } from '../history.js';
import { acknowledged } from './evidence.js';
import { isAllowed, keyOf } from './knowledge.js';

/**
 * P8: nothing acknowledged is lost, and what cannot be decided is refused: every change that was answered is in the log,
 * and nobody was answered yes while nothing could be decided.
 */
export const p8: Checker = (history) => [...lost(history), ...undecidable(history)];

const lost: Checker = (history) =>
  acknowledged(history)
    .filter(({ revision }) => revision === null)
    .map(({ call, what, about }) => ({
      promise: 'P8',
      what: `${what}, said the answer to call ${call.id}, and the log knows nothing of it`,
      calls: [call.id],
      revisions: [],
      about,
    }));

const undecidable: Checker = (history) => {
  const before = new Map<string, number>();
  for (const { asked, answered: at, told } of callsOf(history, 'acquire'))
    if (told?.outcome === 'lease' && at !== null)
      before.set(keyOf(asked), Math.min(before.get(keyOf(asked)) ?? at, at));
  return history.calls.flatMap((call) => {
    const outage = history.outages.find(
      ({ from, until, of }) =>
        (of === '' || of === call.of) && call.sent >= from && (call.answered ?? Number.POSITIVE_INFINITY) <= until,
    );
    // A lease that somebody had been told of may be told again: nothing is decided by that.
    const again = call.kind === 'acquire' && (before.get(keyOf(call.asked)) ?? Number.POSITIVE_INFINITY) < call.sent;
    if (outage === undefined || again || !isYes(call)) return [];
    return [
      {
        promise: 'P8',
        what: `call ${call.id} (${call.kind}) was answered with yes while ${outage.what}`,
        calls: [call.id],
        revisions: [],
        about: [],
      },
    ];
  });
};

function isYes(call: Call): boolean {
  if (call.told === null || call.answered === null) return false;
  switch (call.kind) {
    case 'check':
      return isAllowed({ ...call, told: call.told, answered: call.answered });
    case 'acquire':
    case 'renew':
      return call.told.outcome === 'lease';
    case 'release':
      return call.told.outcome === 'released';
    default:
      return ['create_run', 'revoke', 'stop_run', 'put_map'].includes(call.kind);
  }
}
