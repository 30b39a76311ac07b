import type { LogEvent } from '../api/shapes.js';
import { type Body, bodyOf, listAt, recordAt, textAt } from './event-body.js';
import { inLowerCase } from './words.js';

/** One event in a line: what happened, and how it is to be taken. */
export interface EventLine {
  readonly words: string;
  /** What somebody said about it. */
  readonly said: string;
  readonly tone: 'calm' | 'good' | 'warn' | 'bad' | 'idle';
  /** A stable code that tells why. */
  readonly code: string;
}

type Telling = (body: Body, event: LogEvent) => Partial<EventLine> & { readonly words: string };

const TELLINGS: Readonly<Record<string, Telling>> = {
  checkpoint_begun: () => ({ words: 'the state is digested', tone: 'idle' }),
  checkpoint_written: () => ({ words: 'digest of the state recorded', tone: 'idle' }),
  namespace_created: () => ({ words: 'namespace created' }),
  database_identified: (body) =>
    body.lostHistory === true
      ? {
          words: 'the database lost history: every lease has ended, every run is blocked',
          tone: 'bad',
          said: textAt(body, 'why'),
        }
      : { words: 'database identified', tone: 'idle', said: textAt(body, 'why') },
  conflict_map_put: (body) => ({
    words: `conflict map ${textAt(body, 'version')} applied`,
    said: textAt(body, 'reason'),
  }),
  run_created: (body) => ({ words: 'run created', said: textAt(recordAt(body, 'run'), 'purpose') }),
  run_state_changed: (body) => {
    const state = textAt(body, 'state');
    const bad = ['stopping', 'failed', 'blocked'].includes(state);
    return {
      words: `run is ${inLowerCase(state)}`,
      said: textAt(body, 'reason'),
      tone: bad ? 'warn' : 'calm',
      code: state,
    };
  },
  writes_admitted: (body) => ({ words: `${writesOf(body)} let in, for ${textAt(body, 'target')}` }),
  writes_reported: (body) => {
    const results = [...new Set(listAt(body, 'writes').map((write) => textAt(write, 'result')))];
    const versions = listAt(body, 'writes')
      .map((write) => textAt(write, 'newVersion'))
      .filter((version) => version !== '');
    const version = versions.length === 0 ? '' : `, now at version ${versions.join(', ')}`;
    return {
      words: `${textAt(body, 'target')} reports ${writesOf(body)}: ${results.map(inLowerCase).join(', ')}${version}`,
      said: textAt(body, 'detail'),
      tone: results.every((result) => result === 'succeeded') ? 'good' : 'warn',
    };
  },
  doubt_settled: (body) => ({
    words: `${textAt(body, 'action')} settled: it ${body.happened === true ? 'happened' : 'did not happen'}`,
    said: textAt(body, 'reason'),
    tone: 'good',
  }),
  lease_queued: (body) => ({ words: 'waits', said: textAt(recordAt(body, 'lease'), 'purpose'), tone: 'warn' }),
  lease_granted: (body) => ({ words: 'granted', said: textAt(recordAt(body, 'lease'), 'purpose'), tone: 'good' }),
  lease_attached: () => ({ words: 'waiting requests are attended', tone: 'idle' }),
  lease_claimed: () => ({ words: 'grant claimed', tone: 'idle' }),
  leases_renewed: (body) => ({ words: `${numbered(listAt(body, 'renewals').length, 'lease')} renewed`, tone: 'idle' }),
  renewals_refused: (body) => {
    const refusals = [...new Set(listAt(body, 'refusals').map((refusal) => textAt(refusal, 'refusal')))];
    return { words: `renewal refused: ${refusals.map(inLowerCase).join(', ')}`, tone: 'bad', code: refusals[0] ?? '' };
  },
  lease_reexpanded: () => ({ words: 'expanded anew by a new map' }),
  lease_amended: (body) => ({ words: `write set ${inLowerCase(textAt(body, 'cause')) || 'amended'}` }),
  lease_ended: (body) => {
    const why = textAt(body, 'endReason');
    return {
      words: `ended: ${inLowerCase(why)}`,
      said: textAt(body, 'reason'),
      tone: why === 'released' ? 'idle' : 'warn',
      code: why,
    };
  },
  lock_delay_ended: () => ({ words: 'lock delay over', tone: 'idle' }),
  key_bound: () => ({ words: 'idempotency key bound', tone: 'idle' }),
  acquire_refused: (body) => ({
    words: `refused: ${inLowerCase(textAt(body, 'refusal'))}`,
    said: textAt(body, 'message'),
    tone: 'bad',
    code: textAt(body, 'refusal'),
  }),
  credentials_issued: (body) => ({
    words: `credentials issued for ${listAt(body, 'credentials')
      .map((one) => textAt(one, 'audience'))
      .join(', ')}`,
    tone: 'idle',
  }),
  credentials_refused: (body) => {
    const [first = {}] = listAt(body, 'refusals');
    return {
      words: `credentials refused: ${inLowerCase(textAt(first, 'refusal'))}`,
      said: textAt(first, 'message'),
      tone: 'bad',
      code: textAt(first, 'refusal'),
    };
  },
  credentials_revoked: (body) => ({ words: 'credentials revoked', said: textAt(body, 'reason'), tone: 'warn' }),
  signing_keys_changed: (body) => ({
    words: `signing keys: ${listAt(body, 'changes')
      .map((change) => `${textAt(change, 'keyId').slice(0, 8)} ${inLowerCase(textAt(change, 'state'))}`)
      .join(', ')}`,
    said: textAt(body, 'reason'),
  }),
  rehearsal_begun: (body) => ({
    words: `rehearsal begun: ${listAt(body, 'windows')
      .map((one) => textAt(one, 'pattern'))
      .join(', ')}`,
  }),
  rehearsal_recorded: (body) => ({ words: `rehearsal of ${textAt(body, 'pattern')} recorded` }),
  write_set_taken_over: (body) => ({
    words: `take-over, which ended ${numbered(listAt(body, 'ended').length, 'lease')}`,
    said: textAt(body, 'reason'),
    tone: 'bad',
  }),
  pattern_frozen: (body) => ({
    words: 'frozen',
    said: textAt(recordAt(body, 'freeze'), 'reason'),
    tone: 'warn',
  }),
  pattern_thawed: (body) => ({
    words: body.byTime === true ? 'thawed, since its time was over' : 'thawed',
    said: textAt(body, 'reason'),
    tone: 'good',
  }),
  checks_denied: (body) => {
    const denials = listAt(body, 'denials');
    const [first = {}] = denials;
    const count = denials.reduce((sum, denial) => sum + Number(denial.count ?? 1), 0);
    const where = `${textAt(first, 'action')} at ${textAt(first, 'target')}`;
    return {
      words: `${numbered(count, 'write')} denied: ${inLowerCase(textAt(first, 'reason'))} (${where})`,
      tone: 'bad',
      code: textAt(first, 'reason'),
    };
  },
  texts_erased: (body) => ({ words: 'free texts of a run erased', said: textAt(body, 'reason'), tone: 'warn' }),
  log_cut: (body) => ({
    words: `log cut: it begins at ${textAt(body, 'firstRevision')}`,
    said: textAt(body, 'reason'),
    tone: 'warn',
  }),
  override_reported: (body) => ({
    words: 'local override at a target reported',
    said: textAt(body, 'why'),
    tone: 'bad',
  }),
  resources_unmatched: (body) => ({
    words: `${numbered(listAt(body, 'counts').length, 'resource')} that no kind matches`,
    tone: 'warn',
  }),
};

const numbered = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;

function writesOf(body: Body): string {
  const actions = [...new Set(listAt(body, 'writes').map((write) => textAt(write, 'action')))];
  return actions.length === 0 ? 'a write' : actions.join(', ');
}

/** Kinds of events, for filters. */
export const EVENT_KINDS = Object.keys(TELLINGS).sort();

/** What the coordinator and its callers do all the time, so that things stay as they are. */
const UPKEEP = new Set([
  'checkpoint_begun',
  'checkpoint_written',
  'key_bound',
  'lease_attached',
  'lease_claimed',
  'leases_renewed',
]);

/** Kinds of what has happened, beside upkeep. */
export const TELLING_KINDS = EVENT_KINDS.filter((kind) => !UPKEEP.has(kind));

export function lineOf(event: LogEvent): EventLine {
  const body = bodyOf(event);
  const told = TELLINGS[event.kind]?.(body, event) ?? { words: inLowerCase(event.kind) };
  return { said: '', tone: 'calm', code: '', ...told };
}
