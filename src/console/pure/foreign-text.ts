/**
 * Text that others wrote: names, purposes, reasons, what an agent says. It is shown as text and never as markup, and what
 * cannot be seen in it, or would turn around what stands beside it, is made visible.
 */

/** Controls, zero-width and direction-changing characters, and what has no shape of its own. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|\p{Default_Ignorable_Code_Point}/gu;
/** They join emoji and letters of some scripts; alone between letters of ours they would hide. */
const JOINER = '\u200d';
/** Says that the character before is shown as an emoji. */
const AS_EMOJI = '\ufe0f';

const nameOf = (character: string): string =>
  `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

/** Marks that stand above and below a character: languages have up to four, and a heap of them covers the lines around. */
const HEAP_OF_MARKS = /((?:\p{Mn}|\p{Me}){4})((?:\p{Mn}|\p{Me})+)/gu;

export function visible(text: string): string {
  const flat = withoutHeaps(text);
  return flat.replace(UNSEEN, (character, at: number) => {
    if (character === '\n' || character === '\t') return character;
    if (character === JOINER && isPictograph(flat, at)) return character;
    if (character === AS_EMOJI && PICTOGRAPH_BEFORE.test(flat.slice(Math.max(0, at - 2), at))) return character;
    return nameOf(character);
  });
}

const withoutHeaps = (text: string): string =>
  text.replace(HEAP_OF_MARKS, (_, kept: string, heap: string) => kept + [...heap].map(nameOf).join(''));

const PICTOGRAPH_BEFORE = /(?:\p{Emoji}|\p{Emoji_Modifier}|\ufe0f)$/u;
const PICTOGRAPH_AFTER = /^\p{Extended_Pictographic}/u;

function isPictograph(text: string, at: number): boolean {
  return (
    PICTOGRAPH_BEFORE.test(text.slice(Math.max(0, at - 2), at)) && PICTOGRAPH_AFTER.test(text.slice(at + 1, at + 3))
  );
}

/** Cut to a length for one line; never between the halves of a character. */
export function shortened(text: string, characters: number): string {
  const all = [...text];
  return all.length <= characters ? text : `${all.slice(0, characters - 1).join('')}…`;
}
