/** The empty pointer, the whole document, or steps that each begin with a slash (RFC 6901). */
export const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/;

/**
 * What a JSON pointer points at; undefined when there is nothing.
 *
 * @example readPointer({ policy: { version: 41 } }, '/policy/version') // 41
 */
export function readPointer(document: unknown, pointer: string): unknown {
  if (pointer === '') return document;
  let value = document;
  for (const step of pointer.slice(1).split('/')) {
    if (typeof value !== 'object' || value === null) return undefined;
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    // Of an array only its elements: JSON knows nothing of a length.
    const isThere = Array.isArray(value) ? /^(?:0|[1-9]\d*)$/.test(key) : Object.hasOwn(value, key);
    value = isThere ? (value as Record<string, unknown>)[key] : undefined;
  }
  return value;
}
