import type { MapProblem } from './document.js';

/** Collects what is wrong with a document, so that an admin sees all of it at once. */
export class Problems {
  readonly all: MapProblem[] = [];

  error(code: string, path: string, message: string): void {
    this.all.push({ code, message, path, warning: false });
  }

  warn(code: string, path: string, message: string): void {
    this.all.push({ code, message, path, warning: true });
  }

  get failed(): boolean {
    return this.all.some((problem) => !problem.warning);
  }
}

export const quoted = (text: string): string => JSON.stringify(text);

/** "a", "b" and "c". */
export function listed(texts: readonly string[], none = 'none'): string {
  if (texts.length === 0) return none;
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
  for (const candidate of known) {
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
