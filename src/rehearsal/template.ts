import { readPointer } from './json-pointer.js';

/** What the places of a template are filled with, by name. */
export type Values = Readonly<Record<string, unknown>>;

/** `{name}`, or `{content/members}`: a part of a JSON value, by the rest of a JSON pointer. */
const PLACE = /\{([a-z_]+)((?:\/[^{}]*)?)\}/g;
const WHOLE = /^\{([a-z_]+)((?:\/[^{}]*)?)\}$/;

/** There is nothing to fill a place with. */
export class UnfilledPlace extends Error {
  override readonly name = 'UnfilledPlace';
}

/** Names of the places in a text. */
export function placesIn(text: string): string[] {
  return [...text.matchAll(PLACE)].map(([, name = '']) => name);
}

/** Names of the places in every string of a JSON value, with the path of each string. */
export function placesInJson(
  value: unknown,
  path: readonly (string | number)[] = [],
): { readonly path: readonly (string | number)[]; readonly names: readonly string[] }[] {
  if (typeof value === 'string') return [{ path, names: placesIn(value) }];
  if (Array.isArray(value)) return value.flatMap((one, index) => placesInJson(one, [...path, index]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => placesInJson(one, [...path, key]));
}

/**
 * Fills the places of a text.
 *
 * @example fillText('"{version}"', { version: 41 }) // '"41"'
 */
export function fillText(text: string, values: Values, encode: (value: string) => string = String): string {
  return text.replaceAll(PLACE, (place, name: string, rest: string) => {
    const value = filling(place, name, rest, values);
    return encode(typeof value === 'object' ? JSON.stringify(value) : String(value));
  });
}

/**
 * Fills the places in the strings of a JSON value. A string that is one place and nothing else becomes the value itself,
 * whatever its type.
 *
 * @example fillJson({ members: '{content/members}' }, { content: { members: ['ann'] } }) // { members: ['ann'] }
 */
export function fillJson(value: unknown, values: Values): unknown {
  if (typeof value === 'string') {
    const [place, name, rest = ''] = WHOLE.exec(value) ?? [];
    return place === undefined || name === undefined ? fillText(value, values) : filling(place, name, rest, values);
  }
  if (Array.isArray(value)) return value.map((one) => fillJson(one, values));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fillJson(one, values)]));
}

function filling(place: string, name: string, rest: string, values: Values): unknown {
  const whole = Object.hasOwn(values, name) ? values[name] : undefined;
  const value = rest === '' ? whole : readPointer(whole, rest);
  if (value === undefined || value === null) throw new UnfilledPlace(`there is nothing to put for ${place}`);
  return value;
}
