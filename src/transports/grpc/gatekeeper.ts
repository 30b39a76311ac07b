import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
  type status,
} from '@grpc/grpc-js';
import { toWireStatus } from './status.js';

/** Only health is anonymous. */
const ANONYMOUS = '/grpc.health.v1.Health/';

/** Finds out who calls, by the call's metadata and the certificate (DER) of its session; throws, or rejects with, a Fault. */
export type Authenticate = (metadata: Metadata, certificate: Uint8Array | undefined) => void | Promise<void>;

/**
 * Turns callers away by their metadata and certificate, before their message is read: a stranger must not make the
 * coordinator decode megabytes.
 */
export function gatekeeper(
  authenticate: Authenticate,
  turnedAway: (path: string, code: status) => void,
): ServerInterceptor {
  return (method, call) => {
    if (method.path.startsWith(ANONYMOUS)) return new ServerInterceptingCall(call);
    const refuse = (error: unknown): void => {
      const { code, details, metadata: trailers } = toWireStatus(error, '');
      turnedAway(method.path, code);
      call.sendStatus({ code, details, metadata: trailers });
    };
    const listener = new ServerListenerBuilder().withOnReceiveMetadata((metadata, next) => {
      try {
        // Of a certificate that did not verify grpc-js says nothing here, and so it counts for nothing.
        const found = authenticate(metadata, call.getAuthContext().sslPeerCertificate?.raw);
        if (found === undefined) next(metadata);
        else found.then(() => next(metadata), refuse);
      } catch (error) {
        refuse(error);
      }
    });
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener.build())).build());
  };
}
