import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
} from '@grpc/grpc-js';
import { toWireStatus } from './status.js';

/** Only health is anonymous. */
const ANONYMOUS = '/grpc.health.v1.Health/';

/**
 * Turns callers away by their metadata, before their message is read: a stranger must not make the coordinator decode
 * megabytes. Who passes is authenticated again by the handler, which knows the method and what it may do.
 */
export function gatekeeper(
  authenticate: (metadata: Metadata) => void,
  turnedAway: (path: string) => void,
): ServerInterceptor {
  return (method, call) => {
    if (method.path.startsWith(ANONYMOUS)) return new ServerInterceptingCall(call);
    const listener = new ServerListenerBuilder().withOnReceiveMetadata((metadata, next) => {
      try {
        authenticate(metadata);
      } catch (error) {
        turnedAway(method.path);
        const { code, details, metadata: trailers } = toWireStatus(error, '');
        call.sendStatus({ code, details, metadata: trailers });
        return;
      }
      next(metadata);
    });
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener.build())).build());
  };
}
