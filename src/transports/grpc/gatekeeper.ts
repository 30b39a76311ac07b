import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
  type status,
} from '@grpc/grpc-js';
import { Fault } from '../../domain/fault.js';
import { requestIdOf } from './metadata.js';
import { toWireStatus } from './status.js';

/** Only health is anonymous. */
const ANONYMOUS = '/grpc.health.v1.Health/';

/** Finds out who calls, by the call's metadata and the certificate (DER) of its session; throws, or rejects with, a Fault. */
export type Authenticate = (metadata: Metadata, certificate: Uint8Array | undefined) => void | Promise<void>;

/** How long the one message of a call may take to arrive; the HTTP port gives a request as long. */
const REQUEST_WITHIN_MS = 30_000;

/**
 * Turns callers away by their metadata and certificate, before their message is read: a stranger must not make the
 * coordinator decode megabytes. A message that is a Fault (see `guarded`) is answered with it. One that does not arrive is
 * not waited for: no deadline of the caller's is needed for that, and whoever dials and falls silent would hold a call.
 */
export function gatekeeper(
  authenticate: Authenticate,
  turnedAway: (path: string, code: status) => void,
  requestWithinMs = REQUEST_WITHIN_MS,
): ServerInterceptor {
  return (method, call) => {
    let requestId = '';
    let patience: NodeJS.Timeout | undefined;
    const refuse = (error: unknown): void => {
      clearTimeout(patience);
      const { code, details, metadata } = toWireStatus(error, requestId);
      turnedAway(method.path, code);
      call.sendStatus({ code, details, metadata });
    };
    const find = (metadata: Metadata): void | Promise<void> => {
      if (method.path.startsWith(ANONYMOUS)) return;
      // Of a certificate that did not verify grpc-js says nothing here, and so it counts for nothing.
      return authenticate(metadata, call.getAuthContext().sslPeerCertificate?.raw);
    };
    const listener = new ServerListenerBuilder()
      .withOnReceiveMetadata((metadata, next) => {
        requestId = requestIdOf(metadata);
        // Whoever talks in a stream may be silent in it.
        if (!method.requestStream) patience = setTimeout(() => refuse(notSent(requestWithinMs)), requestWithinMs);
        let found: void | Promise<void>;
        try {
          found = find(metadata);
        } catch (error) {
          refuse(error);
          return;
        }
        if (found === undefined) next(metadata);
        else found.then(() => next(metadata), refuse);
      })
      .withOnReceiveMessage((message, next) => (message instanceof Fault ? refuse(message) : next(message)))
      .withOnReceiveHalfClose((next) => {
        clearTimeout(patience);
        next();
      })
      .withOnCancel(() => clearTimeout(patience));
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener.build())).build());
  };
}

function notSent(withinMs: number): Fault {
  return new Fault(
    'aborted',
    'REQUEST_TIMEOUT',
    `the request was not sent to its end within ${withinMs / 1000} s; nothing was decided, call again`,
  );
}
