import type { WritClient } from '../../clients/common/connect.js';
import { WritError } from '../../clients/common/errors.js';
import type { AffectedLease, ConflictStep } from '../../gen/writ/v1/conflict_map_service.js';
import type { Lease } from '../../gen/writ/v1/types.js';
import type { Output } from '../output.js';
import { counted, short } from '../show.js';

/** Pairs whose meeting is explained, and that people are shown; --json names all. */
const MAX_EXPLAINED = 16;

/** Two live leases that a map puts in conflict, as much of them as the caller may see. */
export interface LivePair {
  readonly a: LeaseOfPair;
  readonly b: LeaseOfPair;
  /** Where they meet, and by which rules; empty beyond MAX_EXPLAINED, and when it cannot be told. */
  readonly meet: readonly Meeting[];
}

interface LeaseOfPair {
  readonly leaseId: string;
  readonly runId: string;
  readonly purpose: string;
}

interface Meeting {
  readonly resourceA: string;
  readonly resourceB: string;
  /** The resource, or the rule of `conflicts`, on which they meet. */
  readonly key: string;
  /** Rules of `implies` that brought the entries. */
  readonly rules: readonly string[];
  readonly message: string;
}

/** The pairs of a preview: each once, by lease id; the first of them with where they meet by the document. */
export async function livePairs(
  writ: WritClient,
  document: string,
  affected: readonly AffectedLease[],
): Promise<LivePair[]> {
  const runs = new Map(affected.map(({ leaseId, runId }) => [leaseId, runId]));
  const keys = new Set(
    affected.flatMap(({ leaseId, conflictsWith }) => conflictsWith.map((other) => [leaseId, other].sort().join(' '))),
  );
  const leases = new Map<string, Lease | null>();
  const leaseOf = async (leaseId: string): Promise<Lease | null> => {
    const known = leases.get(leaseId);
    if (known !== undefined) return known;
    const lease = (await told(writ.lease.getLease({ leaseId })))?.lease ?? null;
    leases.set(leaseId, lease);
    return lease;
  };
  const pairs: LivePair[] = [];
  for (const key of [...keys].sort()) {
    const [a = '', b = ''] = key.split(' ');
    const explained = pairs.length < MAX_EXPLAINED;
    const [leaseA, leaseB] = explained ? [await leaseOf(a), await leaseOf(b)] : [null, null];
    pairs.push({
      a: { leaseId: a, runId: leaseA?.runId ?? runs.get(a) ?? '', purpose: leaseA?.purpose ?? '' },
      b: { leaseId: b, runId: leaseB?.runId ?? runs.get(b) ?? '', purpose: leaseB?.purpose ?? '' },
      meet: leaseA === null || leaseB === null ? [] : await meetings(writ, document, leaseA, leaseB),
    });
  }
  return pairs;
}

/** What the document says of what the two leases asked for. */
async function meetings(writ: WritClient, document: string, a: Lease, b: Lease): Promise<Meeting[]> {
  const side = ({ entries }: Lease) => ({
    entries: entries
      .filter(({ impliedBy }) => impliedBy === '')
      .map(({ resource, access, scope, actions }) => ({ resource, access, scope, actions })),
  });
  const answer = await told(writ.conflictMap.explainConflict({ a: side(a), b: side(b), document }));
  return (answer?.steps ?? []).map((step) => ({
    resourceA: step.resourceA,
    resourceB: step.resourceB,
    key: step.key,
    rules: rulesOf(step),
    message: step.message,
  }));
}

function rulesOf({ ruleA, ruleB }: ConflictStep): string[] {
  return [...new Set([ruleA, ruleB])].filter((rule) => rule !== '');
}

/** These are details of an answer: a lease that has ended meanwhile, or that the role may not see, leaves them out. */
async function told<T>(answer: Promise<T>): Promise<T | null> {
  return answer.catch((error: unknown) => {
    if (error instanceof WritError) return null;
    throw error;
  });
}

export function showLivePairs(out: Output, pairs: readonly LivePair[]): void {
  if (pairs.length === 0) return;
  out.line(`In conflict by the new map: ${counted(pairs.length, 'pair')} of live leases.`);
  for (const { a, b, meet } of pairs.slice(0, MAX_EXPLAINED)) {
    out.line(`  ${leaseText(a)}\n  and ${leaseText(b)}`);
    for (const { resourceA, resourceB, key, rules, message } of meet) {
      const where = resourceA === resourceB ? resourceA : `${resourceA} and ${resourceB}`;
      const by = rules.length === 0 ? '' : `, brought by ${rules.join(' and ')}`;
      out.line(`    ${message === '' ? `${where} meet on ${key}` : message}${by}`);
    }
  }
  if (pairs.length > MAX_EXPLAINED) out.line(`  and ${pairs.length - MAX_EXPLAINED} more; --json names all.`);
}

function leaseText({ leaseId, runId, purpose }: LeaseOfPair): string {
  const run = runId === '' ? '' : ` of run ${runId}`;
  return `lease ${leaseId}${run}${purpose === '' ? '' : ` ("${short(purpose)}")`}`;
}
