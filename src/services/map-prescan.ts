/** Levels of one text that are handed to the parser, which calls itself for each; what a map may have is less. */
const MAX_OPEN = 1_000;
/** Anchors and aliases, `&name` and `*name`, that are handed to the parser. */
const MAX_REFERENCES = 1_000;
/** Lines, commas and opening brackets: every value has one of them. */
export const MAX_VALUES = 200_000;

/** Why a text is not even parsed, and where. */
export interface Excess {
  readonly code: 'too_deep' | 'too_many_values' | 'too_many_aliases';
  readonly message: string;
  readonly at: number;
}

const TAB = 9;
const LINE = 10;
const SPACE = 32;
const AMPERSAND = 38;
const ASTERISK = 42;
const COMMA = 44;
const DASH = 45;
const COLON = 58;
const QUESTION = 63;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const OPEN_MAP = 123;
const CLOSE_MAP = 125;

/**
 * Looks at the text letter by letter before anything is parsed: what is nested without end, has more
 * values than a map may have, or is woven of anchors and aliases costs the parser seconds. It counts
 * without telling quoted text and comments apart, so that nothing can hide in them; a map that people
 * or programs write for use stays far below.
 */
export function beyondBounds(text: string): Excess | null {
  let open = 0;
  let dashes = 0;
  let values = 0;
  let references = 0;
  let before = LINE;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charCodeAt(at);
    // Block lists can begin in one another on one line: `- - - x`.
    if (letter === DASH || letter === QUESTION) dashes += startsItem(before) ? 1 : 0;
    else if (letter !== SPACE && letter !== TAB) dashes = 0;
    if (letter === OPEN_LIST || letter === OPEN_MAP) open += 1;
    else if (letter === CLOSE_LIST || letter === CLOSE_MAP) open = Math.max(0, open - 1);
    else if ((letter === AMPERSAND || letter === ASTERISK) && startsValue(before)) references += 1;
    if (letter === LINE || letter === COMMA || letter === OPEN_LIST || letter === OPEN_MAP) values += 1;
    const excess = excessOf(Math.max(open, dashes), values, references, at);
    if (excess !== null) return excess;
    before = letter;
  }
  return null;
}

const startsItem = (before: number): boolean => before === SPACE || before === TAB || before === LINE;

const startsValue = (before: number): boolean =>
  startsItem(before) || before === OPEN_LIST || before === OPEN_MAP || before === COMMA || before === COLON;

function excessOf(depth: number, values: number, references: number, at: number): Excess | null {
  if (depth > MAX_OPEN)
    return { code: 'too_deep', message: `The text opens more than ${MAX_OPEN} levels one in another.`, at };
  if (values > MAX_VALUES)
    return {
      code: 'too_many_values',
      message: `The text has more than ${MAX_VALUES} values: lines, commas and opening brackets.`,
      at,
    };
  if (references > MAX_REFERENCES)
    return {
      code: 'too_many_aliases',
      message: `The text has more than ${MAX_REFERENCES} YAML anchors and aliases.`,
      at,
    };
  return null;
}
