import { randomUUID } from 'node:crypto';

const REQUEST_ID = /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/;

/** Whether it can be recorded, and found again, as the id of a request. */
export const isRequestId = (text: string): boolean => REQUEST_ID.test(text);

/** The request id that came with a request, where it can be recorded, or one made for it. */
export function requestIdOf(given: string | undefined, make: () => string = randomUUID): string {
  return given !== undefined && isRequestId(given) ? given : make();
}
