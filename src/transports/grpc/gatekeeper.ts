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

/**
 * Turns callers away by their metadata and certificate, before their message is read: a stranger must not make the
 * coordinator decode megabytes. A message that is a Fault (see `guarded`) is answered with it.
 */
export function gatekeeper(
  authenticate: Authenticate,
  turnedAway: (path: string, code: status) => void,
): ServerInterceptor {
  return (method, call) => {
    let requestId = '';
    const refuse = (error: unknown): void => {
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
      .withOnReceiveMessage((message, next) => (message instanceof Fault ? refuse(message) : next(message)));
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener.build())).build());
  };
}
