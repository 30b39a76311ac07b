import { randomBytes } from 'node:crypto';
import type { Metadata } from '@grpc/grpc-js';
import { Fault, invalidArgument } from '../../domain/fault.js';
import { isRequestId, requestIdOf as requestIdIn } from '../request-id.js';

/** What callers say beside their request. */

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
  return requestIdIn(single(metadata, 'x-request-id'), makeRequestId);
}

/** The id that one message of a stream has of its own; throws a Fault where it could not be recorded. Empty: it has none. */
export function checkRequestId(given: string): void {
  if (given === '' || isRequestId(given)) return;
  throw invalidArgument([{ field: 'request_id', description: 'must be at most 128 printable ASCII characters' }]);
}

const REQUEST_ID_PREFIX = randomBytes(6).toString('hex');
let requestIdsMade = 0;

function makeRequestId(): string {
  requestIdsMade += 1;
  return `${REQUEST_ID_PREFIX}-${requestIdsMade.toString(36)}`;
}
