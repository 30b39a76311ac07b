import type { Context } from 'hono';

export const JSON_TYPE = 'application/json';
export const FORM_TYPE = 'application/x-www-form-urlencoded';

/** A body of a type that is not read here (RFC 9110, 15.5.16). */
export class UnsupportedMediaType extends Error {
  constructor(readonly accepted: string) {
    super(`content-type: must be ${accepted}`);
  }
}

/** Throws unless the body is said to be of that type. */
export function demandType(c: Context, accepted: typeof JSON_TYPE | typeof FORM_TYPE): void {
  const [type = ''] = (c.req.header('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() !== accepted) throw new UnsupportedMediaType(accepted);
}
