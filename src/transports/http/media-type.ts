import type { Context } from 'hono';

export const JSON_TYPE = 'application/json';
export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** A body of a type or an encoding that is not read here (RFC 9110, 15.5.16). */
export class UnsupportedMediaType extends Error {
  constructor(
    readonly field: 'content-type' | 'content-encoding',
    readonly accepted: string,
  ) {
    super(`${field}: must be ${accepted}`);
  }
}

/** Throws unless the body is said to be of that type, and as it is: compressed ones are read by nobody here. */
export function demandType(c: Context, accepted: typeof JSON_TYPE | typeof FORM_TYPE): void {
  const encoding = (c.req.header('content-encoding') ?? '').trim().toLowerCase();
  if (!['', 'identity'].includes(encoding)) throw new UnsupportedMediaType('content-encoding', 'identity');
  const [type = ''] = (c.req.header('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() !== accepted) throw new UnsupportedMediaType('content-type', accepted);
}
