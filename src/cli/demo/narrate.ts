/** The demo's voice: a story in plain text, with colours only where a terminal shows them. */

/** Something that should have been observed was not. */
export class UnmetExpectation extends Error {
  override readonly name = 'UnmetExpectation';

  constructor(
    readonly expected: string,
    readonly seen: unknown,
  ) {
    super(`expected: ${expected}`);
  }
}

const STYLES = {
  bold: ['\x1b[1m', '\x1b[22m'],
  dim: ['\x1b[2m', '\x1b[22m'],
  green: ['\x1b[32m', '\x1b[39m'],
  red: ['\x1b[31m', '\x1b[39m'],
} as const;

type Style = keyof typeof STYLES;

const WIDTH = 110;

export interface Screen {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly hasColors?: () => boolean;
}

export class Narrator {
  private readonly coloured: boolean;
  private count = 0;
  private isOver = false;

  constructor(private readonly screen: Screen) {
    this.coloured = screen.isTTY === true && screen.hasColors?.() === true;
  }

  /** Facts that were observed. */
  get observed(): number {
    return this.count;
  }

  /** The story goes no further: whoever still tells it is stopped by an error. */
  stop(): void {
    this.isOver = true;
  }

  title(text: string): void {
    this.goOn();
    this.line(`\n${this.styled('bold', text)}`);
  }

  /** A sentence or two of the story. */
  say(text: string): void {
    this.goOn();
    this.wrapped('  ', text);
  }

  /** What somebody really answered, one named value a line. */
  facts(facts: Readonly<Record<string, string>>): void {
    this.goOn();
    const width = Math.max(...Object.keys(facts).map((name) => name.length));
    for (const [name, value] of Object.entries(facts)) {
      this.wrapped(`      ${this.styled('dim', name.padEnd(width))}  `, value, width + 8);
    }
  }

  /**
   * Goes on only if it is true. `fact` is the sentence that is then told; `seen` is what is shown when it is not.
   */
  observe(fact: string, isTrue: boolean, seen: unknown): asserts isTrue {
    this.goOn();
    if (!isTrue) throw new UnmetExpectation(fact, seen);
    this.count += 1;
    this.wrapped(`  ${this.styled('green', 'observed')}  `, fact, 12);
  }

  unmet(error: UnmetExpectation): void {
    this.line('');
    this.wrapped(`  ${this.styled('red', 'EXPECTED')}  `, error.expected, 12);
    this.wrapped(
      `  ${this.styled('red', 'SEEN')}      `,
      JSON.stringify(error.seen, null, 1) ?? String(error.seen),
      12,
    );
  }

  failed(text: string): void {
    this.line('');
    for (const line of text.split('\n')) this.line(`  ${this.styled('red', line)}`);
  }

  private goOn(): void {
    if (this.isOver) throw new Error('the story has ended');
  }

  private wrapped(lead: string, text: string, indent = lead.length): void {
    const lines: string[] = [''];
    for (const word of text.split(/\s+/)) {
      const last = lines.length - 1;
      const line = lines[last] ?? '';
      if (line === '') lines[last] = word;
      else if (indent + line.length + 1 + word.length <= WIDTH) lines[last] = `${line} ${word}`;
      else lines.push(word);
    }
    this.line(lead + lines.join(`\n${' '.repeat(indent)}`));
  }

  private line(text: string): void {
    this.screen.write(`${text}\n`);
  }

  private styled(style: Style, text: string): string {
    const [on, off] = STYLES[style];
    return this.coloured ? `${on}${text}${off}` : text;
  }
}

const MICROS_PER_SECOND = 1_000_000;

/** The time of day of a moment on the database clock, such as `14:03:22 UTC`. */
export function timeOfDay(micros: number): string {
  const seconds = Math.floor(micros / MICROS_PER_SECOND) % 86_400;
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return `${two(seconds / 3_600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)} UTC`;
}

export function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
