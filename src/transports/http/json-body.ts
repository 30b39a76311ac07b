import type { Context } from 'hono';
import { invalidArgument } from '../../domain/fault.js';

/** The JSON of a request's body; throws a Fault. */
export async function jsonOf(c: Context): Promise<unknown> {
  if (!/^application\/json\s*(?:;|$)/i.test(c.req.header('content-type') ?? ''))
    throw invalidArgument([{ field: 'content-type', description: 'must be application/json' }]);
  try {
    return JSON.parse(await c.req.text());
  } catch {
    throw invalidArgument([{ field: 'body', description: 'must be JSON' }]);
  }
}
