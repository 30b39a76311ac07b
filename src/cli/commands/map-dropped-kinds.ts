import type { WritClient } from '../../clients/common/connect.js';
import { parseConflictMapText } from '../../services/conflict-map-text.js';
import { CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { clean } from '../output.js';
import { counted, several } from '../show.js';

const MOST_NAMED = 16;

/** The same pattern, whatever its captures are called. */
const shape = (pattern: string): string => pattern.replaceAll(/\{[^{}]*?(\.\.\.)?\}/g, '{$1}');

/** The patterns of kinds that one map has and another has not: what it takes away by being put in the place of the other. */
export function droppedKinds(current: string, next: string): string[] {
  const [before, after] = [patternsOf(current), patternsOf(next)];
  if (after === undefined) return [];
  const kept = new Set(after.map(shape));
  return (before ?? []).filter((pattern) => !kept.has(shape(pattern)));
}

/** Undefined: it is no map. */
function patternsOf(text: string): string[] | undefined {
  const parsed = parseConflictMapText([{ name: '', text }]);
  return parsed.ok ? (parsed.document.kinds ?? []).map(({ pattern }) => pattern) : undefined;
}

/** What would go away if the document took the place of the map that is in force. */
export async function wouldDrop(writ: WritClient, document: string): Promise<string[]> {
  const { document: current } = await writ.conflictMap.getConflictMap({});
  return droppedKinds(current, document);
}

/** In words; empty: nothing goes away. */
export function droppedText(dropped: readonly string[]): string {
  if (dropped.length === 0) return '';
  const [verb, pronoun] = dropped.length === 1 ? ['is', 'it'] : ['are', 'they'];
  return (
    `${counted(dropped.length, 'kind')} of the map that is in force ${verb} not in this one, and ${pronoun} would go away: ` +
    clean(several(dropped, MOST_NAMED))
  );
}

/** One fragment put in the place of the whole map is a mistake that nobody would notice before runs are refused. */
export function refuseDropping(current: string, document: string): void {
  const dropped = droppedKinds(current, document);
  if (dropped.length === 0) return;
  throw new CliError(
    EXIT.refused,
    `${droppedText(dropped)}. Nothing was changed.`,
    'The whole map is replaced. If this is one fragment of several, give the directory with all of them; if these kinds are meant to go, say --drop-kinds.',
  );
}
