import { NO_STORE } from '../problem.js';
import type { RouteContext } from '../route.js';

/** JSON that says how long it is, by which is known whether it is worth compressing. */
export function jsonText(c: RouteContext, text: string): Response {
  const length = String(Buffer.byteLength(text));
  return c.body(text, 200, { ...NO_STORE, 'content-type': 'application/json', 'content-length': length });
}
