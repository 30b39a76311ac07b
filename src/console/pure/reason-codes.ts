/** What docs/reason-codes.md says of each code, read from its tables. */
export interface ReasonCode {
  readonly code: string;
  /** The chapter that it stands in. */
  readonly chapter: string;
  /** Names of the columns after the code, with what the row has there. */
  readonly cells: readonly (readonly [string, string])[];
}

const HEADING = /^## (.+)$/;
const ROW = /^\|(.+)\|\s*$/;
const RULE = /^\|[\s|:-]+\|\s*$/;
const CODE = /^`([^`]+)`$/;

export function reasonCodes(markdown: string): readonly ReasonCode[] {
  const codes: ReasonCode[] = [];
  let chapter = '';
  let columns: readonly string[] = [];
  for (const line of markdown.split('\n')) {
    const heading = HEADING.exec(line)?.[1];
    const row = ROW.exec(line)?.[1];
    if (heading !== undefined) chapter = heading;
    if (row === undefined) {
      columns = [];
      continue;
    }
    if (RULE.test(line)) continue;
    const cells = row.split(/(?<!\\)\|/).map((cell) => plain(cell.trim()));
    const code = CODE.exec(row.split('|')[0]?.trim() ?? '')?.[1];
    if (code === undefined) columns = cells;
    else if (columns.length > 1) {
      codes.push({
        code,
        chapter,
        cells: columns.slice(1).map((column, index) => [column, cells[index + 1] ?? ''] as const),
      });
    }
  }
  return codes;
}

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
