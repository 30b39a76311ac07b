import type { Context } from 'hono';
import { invalidArgument } from '../../domain/fault.js';
import { demandType, JSON_TYPE } from './media-type.js';

/** The JSON of a request's body; throws a Fault, or what demandType does. */
export async function jsonOf(c: Context): Promise<unknown> {
  demandType(c, JSON_TYPE);
  try {
    return JSON.parse(await c.req.text());
  } catch {
    throw invalidArgument([{ field: 'body', description: 'must be JSON' }]);
  }
}
