import { randomBytes } from 'node:crypto';
import type { Metadata } from '@grpc/grpc-js';
import { Fault } from '../../domain/fault.js';

/** What callers say beside their request. */

const REQUEST_ID = /^[\x20-\x7e]{1,128}$/;

/** The only value of a header; several are nobody's. */
export function single(metadata: Metadata, key: string): string | undefined {
  const values = metadata.get(key);
  const [value] = values;
  return values.length === 1 && typeof value === 'string' ? value : undefined;
}

/** The `authorization`; throws a Fault `unauthenticated` when there are several, whichever of them would be good. */
export function authorizationOf(metadata: Metadata): string | undefined {
  const { length } = metadata.get('authorization');
  if (length > 1) {
    throw new Fault(
      'unauthenticated',
      'UNAUTHENTICATED',
      `the call carries \`authorization\` ${length} times; which of them is meant cannot be told, so send it once`,
    );
  }
  return single(metadata, 'authorization');
}

/** The request id that the caller gave, or one made for it. */
export function requestIdOf(metadata: Metadata): string {
  const given = single(metadata, 'x-request-id');
  return given !== undefined && REQUEST_ID.test(given) ? given : makeRequestId();
}

const REQUEST_ID_PREFIX = randomBytes(6).toString('hex');
let requestIdsMade = 0;

function makeRequestId(): string {
  requestIdsMade += 1;
  return `${REQUEST_ID_PREFIX}-${requestIdsMade.toString(36)}`;
}
