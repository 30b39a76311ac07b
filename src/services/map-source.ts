import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from 'yaml';
import { childPath, MAX_PROBLEMS } from '../domain/conflict-map/index.js';
import { beyondBounds, MAX_VALUES } from './map-prescan.js';

/** One file of a conflict map. */
export interface TextFile {
  readonly name: string;
  readonly text: string;
}

export interface Position {
  readonly file: string;
  /** 1-based; 0: not known. */
  readonly line: number;
  readonly column: number;
}

/** A problem of the text itself, where it is. */
export interface SourceProblem extends Position {
  readonly code: string;
  readonly message: string;
  readonly path: string;
}

export const MAX_TEXT_BYTES = 1_048_576;
const MAX_DEPTH = 32;
const MAX_ALIASES = 100;

/** What is read of the files: maps, lists and texts, and where each stands. */
export interface Source {
  readonly raw: Record<string, unknown>;
  /** Of values, by path; of a value that is not there, its key. */
  readonly values: Map<string, Position>;
  readonly keys: Map<string, Position>;
  readonly problems: SourceProblem[];
}

/** An object without a prototype: no key of the text can reach one. */
const emptyMap = (): Record<string, unknown> => Object.create(null) as Record<string, unknown>;

/** Parts of a document that fragments add to, one to the other. */
const LISTS: ReadonlySet<string> = new Set(['kinds', 'implies', 'conflicts', 'aliases', 'assertions']);
const MAPS: ReadonlySet<string> = new Set(['resolvers', 'profiles', 'sets', 'tasks']);

/** Reads the files, fragments of one document: lists are joined in the order of the files, keys of maps may not repeat. */
export function readSources(files: readonly TextFile[]): Source {
  const source: Source = { raw: emptyMap(), values: new Map(), keys: new Map(), problems: [] };
  let bytes = 0;
  for (const file of files) {
    bytes += Buffer.byteLength(file.text);
    if (bytes > MAX_TEXT_BYTES) {
      source.problems.push({
        code: 'too_large',
        message: `The conflict map is larger than ${MAX_TEXT_BYTES} bytes.`,
        path: '',
        file: file.name,
        line: 0,
        column: 0,
      });
      return source;
    }
    new FileReader(file, source).read();
  }
  return source;
}

/** Parses without giving any scalar a type; the schema does that. */
export function parseYaml(text: string, lines: LineCounter): Document.Parsed {
  return parseDocument(text, {
    schema: 'failsafe',
    lineCounter: lines,
    prettyErrors: false,
    // The library compares every pair of keys; the reader finds repeated ones in one pass.
    uniqueKeys: false,
    logLevel: 'error',
  });
}

class FileReader {
  private readonly lines = new LineCounter();
  private nodes = 0;
  private aliases = 0;

  constructor(
    private readonly file: TextFile,
    private readonly source: Source,
  ) {}

  read(): void {
    const bad = forbiddenCharacter(this.file.text);
    if (bad !== null) {
      this.unread('invalid_character', bad);
      return;
    }
    const excess = beyondBounds(this.file.text);
    if (excess !== null) {
      this.unread(excess.code, excess);
      return;
    }
    const document = this.parse();
    if (document === null) return;
    // One slip makes many errors; the first says where it is.
    const error = document.errors[0] ?? document.warnings[0];
    if (error !== undefined) {
      this.problem('yaml', `${firstLine(error.message)}${this.hint(error.pos[0])}`, '', error.pos[0]);
      return;
    }
    if (document.contents === null) return;
    const root = document.contents as Node;
    if (isScalar(root) && root.value === '') return;
    if (!isMap(root)) {
      this.problem('invalid_value', 'A conflict map is a map of keys.', '', root.range?.[0] ?? 0);
      return;
    }
    if (!this.source.values.has('')) this.source.values.set('', this.position(root.range?.[0] ?? 0));
    this.refuseRepeated(root.items as Pair<Node, Node | null>[]);
    for (const pair of root.items) this.topLevel(pair as Pair<Node, Node | null>, document);
  }

  /** Of one file every key is there once; several files may share lists and maps. */
  private refuseRepeated(items: readonly Pair<Node, Node | null>[]): void {
    const seen = new Map<unknown, number>();
    for (const { key } of items) {
      const name = isScalar(key) ? key.value : key;
      const at = key.range?.[0] ?? 0;
      const before = seen.get(name);
      if (before === undefined) seen.set(name, at);
      else {
        const { line } = this.position(before);
        this.problem(
          'repeated_key',
          `${JSON.stringify(name)} is already there: in line ${line}. Keep one.`,
          String(name),
          at,
        );
      }
    }
  }

  private parse(): Document.Parsed | null {
    try {
      return parseYaml(this.file.text, this.lines);
    } catch (error) {
      // The parser calls itself for every level; text that is nested without end overflows its stack.
      const deep = error instanceof RangeError;
      this.problem(
        deep ? 'too_deep' : 'yaml',
        deep ? `The text is nested more than ${MAX_DEPTH} levels deep.` : 'The text cannot be read as YAML.',
        '',
        0,
      );
      return null;
    }
  }

  /** The slip that patterns invite: inside `{ }` and `[ ]`, text with braces must be quoted. */
  private hint(offset: number): string {
    const { line } = this.lines.linePos(offset);
    const bare = /[:,[]\s+(?!["'])([^\s"',:{}[\]]+\{[A-Za-z_][\w-]*(?:\.\.\.)?\}[^\s"',{}[\]]*)/.exec(
      this.file.text.split('\n')[line - 1] ?? '',
    )?.[1];
    return bare === undefined ? '' : ` Inside { } and [ ], text with braces must be quoted: ${JSON.stringify(bare)}.`;
  }

  private topLevel(pair: Pair<Node, Node | null>, document: Document.Parsed): void {
    const key = this.keyOf(pair, '');
    if (key === null) return;
    const at = pair.key.range?.[0] ?? 0;
    if (!this.source.keys.has(key)) this.source.keys.set(key, this.position(at));
    const node = this.resolve(pair.value, key, document);
    if (LISTS.has(key) && isSeq(node)) this.joinList(key, node.items as Node[], document);
    else if (MAPS.has(key) && isMap(node)) this.joinMap(key, node.items as Pair<Node, Node | null>[], document);
    else if (this.source.raw[key] === undefined) this.source.raw[key] = this.value(pair.value, key, document, 1, at);
    else if (this.source.raw[key] !== (isScalar(node) ? node.value : undefined)) this.repeated(key, at);
  }

  private joinList(key: string, items: readonly Node[], document: Document.Parsed): void {
    const present = this.source.raw[key] ?? [];
    if (!Array.isArray(present)) return;
    this.source.raw[key] = present;
    for (const item of items) present.push(this.value(item, childPath(key, present.length), document, 2, 0));
  }

  private joinMap(key: string, items: readonly Pair<Node, Node | null>[], document: Document.Parsed): void {
    const present = this.source.raw[key] ?? emptyMap();
    if (typeof present !== 'object' || Array.isArray(present)) return;
    this.source.raw[key] = present;
    this.fill(present as Record<string, unknown>, items, key, document, 2);
  }

  private fill(
    into: Record<string, unknown>,
    items: readonly Pair<Node, Node | null>[],
    path: string,
    document: Document.Parsed,
    depth: number,
  ): void {
    for (const pair of items) {
      const key = this.keyOf(pair, path);
      if (key === null) continue;
      const at = pair.key.range?.[0] ?? 0;
      const below = childPath(path, key);
      if (Object.hasOwn(into, key)) {
        this.repeated(below, at);
        continue;
      }
      this.source.keys.set(below, this.position(at));
      into[key] = this.value(pair.value, below, document, depth, at);
    }
  }

  private repeated(path: string, at: number): void {
    const before = this.source.keys.get(path);
    const where =
      before === undefined ? 'before' : `in ${before.file === '' ? 'the document' : before.file}, line ${before.line}`;
    this.problem(
      'repeated_key',
      `${JSON.stringify(path)} is already there: ${where}. Fragments of one map may not say the same thing twice.`,
      path,
      at,
    );
  }

  private keyOf(pair: Pair<Node, Node | null>, path: string): string | null {
    const at = (pair.key as Node | null)?.range?.[0] ?? 0;
    if (!isScalar(pair.key) || typeof pair.key.value !== 'string')
      this.problem('invalid_value', 'A key must be text.', path, at);
    else if (pair.key.value === '__proto__')
      this.problem('unknown_key', 'Nothing may be called "__proto__".', path, at);
    else return pair.key.value;
    return null;
  }

  private value(node: Node | null, path: string, document: Document.Parsed, depth: number, keyAt: number): unknown {
    const at = node?.range?.[0] ?? keyAt;
    this.source.values.set(path, this.position(at));
    this.nodes += 1;
    if (depth > MAX_DEPTH) {
      this.problem('too_deep', `The text is nested more than ${MAX_DEPTH} levels deep.`, path, at);
      return '';
    }
    if (this.nodes > MAX_VALUES) {
      if (this.nodes === MAX_VALUES + 1)
        this.problem(
          'too_many_values',
          `The text has more than ${MAX_VALUES} values, those that YAML aliases repeat counted again.`,
          path,
          at,
        );
      return '';
    }
    const resolved = this.resolve(node, path, document);
    if (isMap(resolved)) {
      const map = emptyMap();
      this.fill(map, resolved.items as Pair<Node, Node | null>[], path, document, depth + 1);
      return map;
    }
    if (isSeq(resolved))
      return (resolved.items as Node[]).map((item, index) =>
        this.value(item, childPath(path, index), document, depth + 1, at),
      );
    const text = isScalar(resolved) && typeof resolved.value === 'string' ? resolved.value : '';
    const bad = forbiddenCharacter(text);
    if (bad !== null) this.problem('invalid_character', bad.message, path, at);
    return text;
  }

  private resolve(node: Node | null, path: string, document: Document.Parsed): Node | null {
    if (!isAlias(node)) return node;
    this.aliases += 1;
    if (this.aliases > MAX_ALIASES) {
      if (this.aliases === MAX_ALIASES + 1)
        this.problem(
          'too_many_aliases',
          `The text uses more than ${MAX_ALIASES} YAML aliases.`,
          path,
          node.range?.[0] ?? 0,
        );
      return null;
    }
    return node.resolve(document) ?? null;
  }

  private problem(code: string, message: string, path: string, offset: number): void {
    if (this.source.problems.length >= MAX_PROBLEMS) return;
    this.source.problems.push({ code, message, path, ...this.position(offset) });
  }

  /** A problem of a text that is not parsed, so that nothing knows its lines yet. */
  private unread(code: string, { message, at }: { readonly message: string; readonly at: number }): void {
    const lines = this.file.text.slice(0, at).split('\n');
    const column = (lines[lines.length - 1] ?? '').length + 1;
    this.source.problems.push({ code, message, path: '', file: this.file.name, line: lines.length, column });
  }

  private position(offset: number): Position {
    const { line, col } = this.lines.linePos(offset);
    return { file: this.file.name, line, column: col };
  }
}

/** Control characters but tab and line ends, and halves of surrogate pairs: nothing that can be stored and shown. */
function forbiddenCharacter(text: string): { readonly at: number; readonly message: string } | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f]/.exec(text);
  if (control !== null)
    return {
      at: control.index,
      message: `It contains the control character U+${control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}.`,
    };
  if (text.isWellFormed()) return null;
  return { at: 0, message: 'It contains half of a surrogate pair, which is no character.' };
}

const firstLine = (text: string): string => {
  const line = text.split('\n')[0] ?? text;
  return /[.!?]$/.test(line) ? line : `${line}.`;
};
