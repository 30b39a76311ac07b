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

/**
 * Turns callers away by their metadata, before their message is read: a stranger must not make the coordinator decode
 * megabytes. Who passes is authenticated again by the handler, which knows the method and what it may do. A message that
 * is a Fault (see `guarded`) is answered with it.
 */
export function gatekeeper(
  authenticate: (metadata: Metadata) => void,
  turnedAway: (path: string, code: status) => void,
): ServerInterceptor {
  return (method, call) => {
    let requestId = '';
    const refuse = (error: unknown): void => {
      const { code, details, metadata } = toWireStatus(error, requestId);
      turnedAway(method.path, code);
      call.sendStatus({ code, details, metadata });
    };
    const listener = new ServerListenerBuilder()
      .withOnReceiveMetadata((metadata, next) => {
        requestId = requestIdOf(metadata);
        try {
          if (!method.path.startsWith(ANONYMOUS)) authenticate(metadata);
        } catch (error) {
          refuse(error);
          return;
        }
        next(metadata);
      })
      .withOnReceiveMessage((message, next) => (message instanceof Fault ? refuse(message) : next(message)));
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener.build())).build());
  };
}
