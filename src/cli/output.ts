/** Where text goes; a subset of process.stdout. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow';

const CODES: Readonly<Record<Style, string>> = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33' };

/** A cell of a table: text, or styled text. */
export type Cell = string | { readonly text: string; readonly style: Style };

/**
 * What a command says. Results go to stdout: tables and sentences for people, one JSON document with --json for
 * machines. Remarks and errors go to stderr, so that neither spoils the other. Colour only for a terminal.
 */
export class Output {
  json = false;

  constructor(
    private readonly stdout: Sink,
    private readonly stderr: Sink,
    private readonly noColor: boolean,
  ) {}

  /** A line of the result, for people. */
  line(text = ''): void {
    this.stdout.write(`${text}\n`);
  }

  /** Something exact, such as a document; nothing is added. */
  raw(text: string): void {
    this.stdout.write(text);
  }

  /** A remark that is not part of the result. */
  note(text: string): void {
    this.stderr.write(`${text}\n`);
  }

  /** The result in the form that was asked for. */
  result(machine: () => unknown, human: () => void): void {
    if (this.json) this.stdout.write(`${JSON.stringify(machine(), null, 2)}\n`);
    else human();
  }

  /** Aligned columns; no line at all for no rows, so say something else then. */
  table(headers: readonly string[], rows: readonly (readonly Cell[])[]): void {
    const head: Cell[] = headers.map((text) => ({ text, style: 'dim' }));
    for (const row of layOut([head, ...rows])) {
      this.line(
        row
          .map(({ text, style, padding }) => (style === undefined ? text : this.style(text, style)) + padding)
          .join('  ')
          .trimEnd(),
      );
    }
  }

  /** `name: value` lines, aligned. Empty values are left out. */
  facts(pairs: readonly (readonly [string, Cell])[]): void {
    const shown = pairs.filter(([, cell]) => textOf(cell) !== '');
    const width = Math.max(0, ...shown.map(([name]) => name.length));
    for (const [name, cell] of shown) {
      const value = typeof cell === 'string' ? clean(cell) : this.style(clean(cell.text), cell.style);
      this.line(`${this.style(name, 'dim')}${' '.repeat(width - name.length)}  ${value}`);
    }
  }

  style(text: string, style: Style): string {
    const colours = !this.noColor && this.stdout.isTTY === true;
    return colours ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;
  }
}

interface LaidOut {
  readonly text: string;
  readonly style: Style | undefined;
  readonly padding: string;
}

function layOut(rows: readonly (readonly Cell[])[]): LaidOut[][] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries())
      widths[column] = Math.max(widths[column] ?? 0, width(clean(textOf(cell))));
  }
  return rows.map((row) =>
    row.map((cell, column) => {
      const text = clean(textOf(cell));
      const style = typeof cell === 'string' ? undefined : cell.style;
      return { text, style, padding: ' '.repeat((widths[column] ?? 0) - width(text)) };
    }),
  );
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text;
}

/** Characters, roughly: enough for columns of ids. */
function width(text: string): number {
  return [...text].length;
}

/**
 * Text of others on one line, without what a terminal would obey: another agent's free text is an injection path.
 */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character === '\n' || character === '\t' ? ' ' : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
