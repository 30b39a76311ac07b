import { DEFAULT_VALIDITY, DEFAULT_WINDOW, type RehearsedOutcome } from '../../domain/rehearsal.js';
import * as wire from '../../gen/writ/v1/conflict_map_service.js';
import type { RehearsalView } from '../../services/api.js';
import { RequestReader, toOptionalTimestamp, toTimestamp } from '../messages/convert.js';
import type { UnaryMethods } from './method.js';

type Methods = Pick<
  UnaryMethods<wire.ConflictMapServiceServer>,
  'beginRehearsal' | 'recordRehearsal' | 'listRehearsals'
>;

const OUTCOME_TO_WIRE: Readonly<Record<RehearsedOutcome, wire.RehearsalOutcome>> = {
  passed: wire.RehearsalOutcome.REHEARSAL_OUTCOME_PASSED,
  failed: wire.RehearsalOutcome.REHEARSAL_OUTCOME_FAILED,
  not_applicable: wire.RehearsalOutcome.REHEARSAL_OUTCOME_NOT_APPLICABLE,
  undecided: wire.RehearsalOutcome.REHEARSAL_OUTCOME_UNDECIDED,
};

const OUTCOMES = new Map(Object.entries(OUTCOME_TO_WIRE).map(([word, number]) => [number, word as RehearsedOutcome]));

/** The methods of ConflictMapService about rehearsals. */
export const rehearsalMethods: Methods = {
  beginRehearsal: async (api, call, request) => {
    const reader = new RequestReader();
    const within = reader.duration(request.within, 'within') ?? DEFAULT_WINDOW;
    reader.done();
    const { resources, runIds, namespace } = request;
    const { value, revision } = await api.beginRehearsal(call.within(namespace), { resources, runIds, within });
    return { until: toTimestamp(value.until), logRevision: BigInt(revision) };
  },
  recordRehearsal: async (api, call, request) => {
    const reader = new RequestReader();
    const validFor = reader.duration(request.validFor, 'valid_for') ?? DEFAULT_VALIDITY;
    const cases = request.cases.map(({ name, outcome }, index) => ({
      name,
      outcome: outcomeOf(outcome, index, reader),
    }));
    reader.done();
    const { resource, targetName, suiteVersion, resultDigest: digest, namespace } = request;
    const input = { resource, targetName, suiteVersion, digest, cases, validFor };
    const { value, revision } = await api.recordRehearsal(call.within(namespace), input);
    return { rehearsal: toRehearsal(value), logRevision: BigInt(revision) };
  },
  listRehearsals: async (api, call, request) => {
    const reader = new RequestReader();
    const page = reader.page(request.page, 'page');
    reader.done();
    const { items, nextToken } = await api.listRehearsals(call.within(request.namespace), { page });
    return { rehearsals: items.map(toRehearsal), nextPageToken: nextToken };
  },
};

function outcomeOf(outcome: wire.RehearsalOutcome, index: number, reader: RequestReader): RehearsedOutcome {
  const word = OUTCOMES.get(outcome);
  if (word === undefined) reader.wrong(`cases[${index}].outcome`, 'is required: a RehearsalOutcome');
  return word ?? 'undecided';
}

function toRehearsal({ pattern, last, required, whyNot, openUntil }: RehearsalView): wire.Rehearsal {
  return {
    kind: pattern,
    required,
    counts: whyNot === '',
    whyNot,
    resource: last?.resource ?? '',
    targetName: last?.target ?? '',
    suiteVersion: last?.suiteVersion ?? '',
    resultDigest: last?.digest ?? '',
    cases: (last?.cases ?? []).map(({ name, outcome }) => ({ name, outcome: OUTCOME_TO_WIRE[outcome] })),
    recordedBy: last?.recordedBy ?? '',
    recordedAt: toOptionalTimestamp(last?.recordedAt ?? null),
    validUntil: toOptionalTimestamp(last?.validUntil ?? null),
    openUntil: toOptionalTimestamp(openUntil),
  };
}
