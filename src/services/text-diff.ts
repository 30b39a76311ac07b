/** Lines of both texts in order; ` ` is in both, `-` only in the old one, `+` only in the new one. */
export interface DiffLine {
  readonly mark: ' ' | '-' | '+';
  readonly text: string;
  /** 1-based in the old text; of an added line, where it goes. */
  readonly oldLine: number;
  readonly newLine: number;
}

/** Larger than this, differences are not aligned any more but told as one block: the table would not fit in memory. */
const MAX_CELLS = 25_000_000;

/** The difference of two texts by their longest common subsequence of lines. */
export function diffLines(oldText: string, newText: string): DiffLine[] {
  const [a, b] = [linesOf(oldText), linesOf(newText)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = align(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const same = (lines: readonly string[]) => lines.map((text) => ({ mark: ' ' as const, text }));
  return number([...same(a.slice(0, start)), ...middle, ...same(a.slice(a.length - end))]);
}

/** As a unified diff, `context` lines around each change; empty when the texts are equal. */
export function unifiedDiff(oldText: string, newText: string, oldName: string, newName: string, context = 3): string[] {
  const lines = diffLines(oldText, newText);
  const near = new Set<number>();
  for (const [index, line] of lines.entries()) {
    if (line.mark === ' ') continue;
    for (let at = index - context; at <= index + context; at += 1) near.add(at);
  }
  const output: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    if (!near.has(at)) continue;
    let end = at;
    while (end < lines.length && near.has(end)) end += 1;
    const hunk = lines.slice(at, end);
    output.push(heading(hunk), ...hunk.map(({ mark, text }) => `${mark}${text}`));
    at = end;
  }
  return output.length === 0 ? [] : [`--- ${oldName}`, `+++ ${newName}`, ...output];
}

function heading(hunk: readonly DiffLine[]): string {
  const count = (mark: '-' | '+') => hunk.filter((line) => line.mark === ' ' || line.mark === mark).length;
  const [first] = hunk;
  return `@@ -${first?.oldLine ?? 0},${count('-')} +${first?.newLine ?? 0},${count('+')} @@`;
}

type Marked = Pick<DiffLine, 'mark' | 'text'>;

function align(a: readonly string[], b: readonly string[]): Marked[] {
  const removed = a.map((text) => ({ mark: '-' as const, text }));
  const added = b.map((text) => ({ mark: '+' as const, text }));
  if (a.length === 0 || b.length === 0 || (a.length + 1) * (b.length + 1) > MAX_CELLS) return [...removed, ...added];
  const width = b.length + 1;
  // common[i * width + j]: length of the longest common subsequence of a from i and b from j.
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        a[i] === b[j]
          ? at(common, (i + 1) * width + j + 1) + 1
          : Math.max(at(common, (i + 1) * width + j), at(common, i * width + j + 1));
    }
  }
  const lines: Marked[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ mark: ' ', text: a[i] ?? '' });
      i += 1;
      j += 1;
    } else if (at(common, (i + 1) * width + j) >= at(common, i * width + j + 1)) lines.push(removed[i++] as Marked);
    else lines.push(added[j++] as Marked);
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)];
}

function at(table: Uint16Array, index: number): number {
  return table[index] ?? 0;
}

function number(lines: readonly Marked[]): DiffLine[] {
  let [oldLine, newLine] = [1, 1];
  return lines.map(({ mark, text }) => {
    const line = { mark, text, oldLine, newLine };
    if (mark !== '+') oldLine += 1;
    if (mark !== '-') newLine += 1;
    return line;
  });
}

function linesOf(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  else lines[lines.length - 1] += '\n\\ No newline at end of file';
  return lines;
}
