/** What the guides say of each code, and of what can be seen when something is wrong: read from their tables. */
export interface ReasonCode {
  /** A code, or in words what is seen. */
  readonly code: string;
  readonly isCode: boolean;
  /** The chapter that it stands in. */
  readonly chapter: string;
  /** Names of the columns after the first, with what the row has there. */
  readonly cells: readonly (readonly [string, string])[];
}

const HEADING = /^## (.+)$/;
const ROW = /^\|(.+)\|\s*$/;
const RULE = /^\|[\s|:-]+\|\s*$/;
const CODE = /^`([^`]+)`$/;

/** Every row of every table. */
export function guideRows(markdown: string): readonly ReasonCode[] {
  const rows: ReasonCode[] = [];
  let chapter = '';
  let columns: readonly string[] | null = null;
  let before: readonly string[] = [];
  for (const line of markdown.split('\n')) {
    chapter = HEADING.exec(line)?.[1] ?? chapter;
    const row = ROW.exec(line)?.[1];
    if (row === undefined) {
      columns = null;
    } else if (RULE.test(line)) {
      columns = before;
    } else {
      const cells = row.split(/(?<!\\)\|/).map((cell) => cell.trim());
      before = cells.map(plain);
      if (columns !== null) rows.push(rowOf(chapter, cells[0] ?? '', columns, before));
    }
  }
  return rows;
}

const rowOf = (
  chapter: string,
  marked: string,
  [, ...columns]: readonly string[],
  [first = '', ...cells]: readonly string[],
): ReasonCode => ({
  code: first,
  isCode: CODE.test(marked),
  chapter,
  cells: columns.map((column, index) => [column, cells[index] ?? ''] as const),
});

/** Those that explain a code. */
export const reasonCodes = (markdown: string): readonly ReasonCode[] =>
  guideRows(markdown).filter(({ isCode, cells }) => isCode && cells.length > 0);

/** Markdown without its marks. */
function plain(text: string): string {
  return text
    .replace(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replaceAll('\\|', '|');
}

/** Those whose code, or whose explanation, has the text; an exact code first. */
export function found(codes: readonly ReasonCode[], text: string): readonly ReasonCode[] {
  const wanted = text.trim().toLowerCase().replaceAll(' ', '_');
  if (wanted === '') return codes;
  const exact = codes.filter(({ code }) => code.toLowerCase() === wanted);
  if (exact.length > 0) return exact;
  const words = text.trim().toLowerCase();
  return codes.filter(
    ({ code, cells }) =>
      code.toLowerCase().includes(wanted) || cells.some(([, cell]) => cell.toLowerCase().includes(words)),
  );
}
