import { starRemark } from '../pattern.js';
import type { MapProblem } from './document.js';

/** Errors told about one document, and as many warnings: past that, more of them help nobody. */
export const MAX_PROBLEMS = 1_000;

/** A message, or what makes it when it is told: hints cost a look at all names there are. */
type Message = string | (() => string);

const textOf = (message: Message): string => (typeof message === 'string' ? message : message());

/** Collects what is wrong with a document, so that an admin sees all of it at once. */
export class Problems {
  readonly all: MapProblem[] = [];
  private errors = 0;
  private warnings = 0;

  error(code: string, path: string, message: Message): void {
    this.errors += 1;
    if (this.errors <= MAX_PROBLEMS) this.all.push({ code, message: textOf(message), path, warning: false });
  }

  warn(code: string, path: string, message: Message): void {
    this.warnings += 1;
    if (this.warnings <= MAX_PROBLEMS) this.all.push({ code, message: textOf(message), path, warning: true });
  }

  get failed(): boolean {
    return this.errors > 0;
  }
}

/** For a document that was judged before: an error is a fault of this version, and warnings were told. */
export class FirstError extends Problems {
  override error(_code: string, path: string, message: Message): void {
    throw new Error(`the stored conflict map cannot be compiled: ${path}: ${textOf(message)}`);
  }

  override warn(): void {}
}

export const quoted = (text: string): string => JSON.stringify(text);

/** A rule that ties, or a kind that protects, next to nothing, because somebody took a star for a wildcard. */
export function warnOfStar(text: string, path: string, problems: Problems): void {
  const remark = starRemark(text);
  if (remark !== null) problems.warn('literal_star', path, remark);
}

/** Names that a message lists, and known names that are looked at for a hint. */
const MAX_LISTED = 32;
const MAX_HINTS = 256;

/** "a", "b" and "c"; of very many the first. */
export function listed(texts: readonly string[], none = 'none'): string {
  if (texts.length === 0) return none;
  if (texts.length > MAX_LISTED)
    return `${texts.slice(0, MAX_LISTED).map(quoted).join(', ')} and ${texts.length - MAX_LISTED} more`;
  const words = texts.map(quoted);
  return words.length === 1 ? (words[0] as string) : `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`;
}

/** Ends a sentence: `; did you mean "x"?` when one of the known names is close enough to be meant, else a full stop. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const best = closest(name, known);
  return best === null ? '.' : `; did you mean ${quoted(best)}?`;
}

/** The known name that differs least, if it differs by a third of its letters at most. */
function closest(name: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let least = Math.max(1, Math.floor(name.length / 3)) + 1;
  let looked = 0;
  for (const candidate of known) {
    if (looked >= MAX_HINTS) break;
    looked += 1;
    if (Math.abs(candidate.length - name.length) >= least) continue;
    const distance = editDistance(name, candidate);
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

/** Letters to add, drop, replace or swap with the next (optimal string alignment); names are short. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
          ? (before[j - 2] as number) + 1
          : Number.POSITIVE_INFINITY;
      next.push(Math.min(replaced, swapped, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] as number;
}
