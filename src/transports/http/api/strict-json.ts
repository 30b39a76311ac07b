import { type MessageBounds, tooManyFields } from '../../message-size.js';
import { WrongRequest } from './wrong-request.js';

/** Of objects and lists in one another; the contract needs 6. */
const MAX_DEPTH = 32;

/**
 * Reads a body as JSON, and refuses what two readers could take in two ways or what would be lost on the way: a member
 * that is given twice, `__proto__`, and more depth or members than any request has. Throws a Fault.
 */
export function readStrictJson(text: string, bounds: MessageBounds): unknown {
  // First, since a million lists in one another are read for a second, in which nobody else is served.
  new Scan(text, bounds).run();
  return parsed(text);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const at = /at position (\d+)/.exec((error as Error).message)?.[1];
    const where = at === undefined ? '' : `; it is none from character ${at} on`;
    throw wrong('body', `must be JSON${where}`);
  }
}

function wrong(field: string, description: string) {
  return new WrongRequest([{ field, description }]);
}

/** Where in the text it is: in an object, at the value of `key`; in a list, at `index`. */
interface Level {
  readonly keys: Set<string> | null;
  key: string;
  index: number;
}

/** Goes once over what may be JSON; what is none is told by who reads it then. */
class Scan {
  readonly #text: string;
  readonly #bounds: MessageBounds;
  readonly #levels: Level[] = [];
  #at = 0;
  #fields = 0;
  /** The next string is a member's name. */
  #isName = false;

  constructor(text: string, bounds: MessageBounds) {
    this.#text = text;
    this.#bounds = bounds;
  }

  run(): void {
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at];
      if (character === '"') this.#string();
      else {
        this.#at += 1;
        if (character === '{') this.#open(new Set());
        else if (character === '[') this.#open(null);
        else if (character === '}' || character === ']') this.#close();
        else if (character === ',') this.#next();
      }
    }
  }

  #open(keys: Set<string> | null): void {
    if (this.#levels.length === MAX_DEPTH) throw wrong(this.#path(), `is more than ${MAX_DEPTH} levels deep`);
    this.#levels.push({ keys, key: '', index: 0 });
    this.#isName = keys !== null;
    if (keys === null) this.#count();
  }

  #close(): void {
    this.#levels.pop();
    this.#isName = false;
  }

  #next(): void {
    const level = this.#levels[this.#levels.length - 1];
    if (level === undefined) return;
    this.#isName = level.keys !== null;
    if (level.keys !== null) return;
    level.index += 1;
    this.#count();
  }

  #string(): void {
    const start = this.#at;
    do this.#at += this.#text[this.#at] === '\\' ? 2 : 1;
    while (this.#at < this.#text.length && this.#text[this.#at] !== '"');
    this.#at += 1;
    if (!this.#isName) return;
    this.#isName = false;
    const name = nameOf(this.#text.slice(start, this.#at));
    if (name !== null) this.#name(name);
  }

  #name(name: string): void {
    const level = this.#levels[this.#levels.length - 1] as Level;
    level.key = name;
    if (name === '__proto__') throw wrong(this.#path(), 'must not be __proto__');
    if (level.keys?.has(name) === true) throw wrong(this.#path(), 'is given twice');
    level.keys?.add(name);
    this.#count();
  }

  #count(): void {
    this.#fields += 1;
    if (this.#fields > this.#bounds.maxFields) throw tooManyFields(this.#path(), this.#bounds);
  }

  #path(): string {
    return pathOf(this.#levels.map(({ keys, key, index }) => (keys === null ? index : key))) || 'body';
  }
}

/** Null: it is no string of JSON. */
function nameOf(text: string): string | null {
  try {
    return JSON.parse(text) as string;
  } catch {
    return null;
  }
}

/** Such as `entries[0].resource`. */
export function pathOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${told(String(part))}`))
    .join('');
}

/** Tokens, and lease ids, are no shorter. */
const MAX_TOLD_NAME = 31;

/** What is in the place of a name, and may be a secret, stands in no answer and no log. */
export function told(name: string): string {
  return name.length <= MAX_TOLD_NAME ? name : `(${name.length} characters)`;
}
