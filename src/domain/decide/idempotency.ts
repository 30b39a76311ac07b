import { Fault } from '../fault.js';

/** The same key with another request (P6). */
export function keyReused(key: string): Fault {
  return new Fault(
    'already_exists',
    'IDEMPOTENCY_KEY_REUSED',
    `The idempotency key ${JSON.stringify(key)} was used with another request. Use a new key for a new request.`,
    { metadata: { idempotency_key: key } },
  );
}
