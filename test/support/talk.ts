import { once } from 'node:events';
import {
  type Client,
  type ClientDuplexStream,
  type Metadata,
  type MethodDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { WritError } from '../../src/clients/common/errors.js';

/** A stream in both directions as a test talks on it. */
export interface Talking<Request, Response> {
  readonly stream: ClientDuplexStream<Request, Response>;
  /** All that was heard so far. */
  readonly heard: Response[];
  send(request: Request): void;
  /** Resolves with what was heard once this holds of it. */
  until(holds: (heard: readonly Response[]) => boolean): Promise<readonly Response[]>;
  /** How the stream ended: `OK`, or `CODE REASON`. */
  readonly ended: Promise<string>;
}

export function talk<Request, Response>(
  client: Client,
  method: MethodDefinition<Request, Response>,
  metadata: Metadata,
): Talking<Request, Response> {
  const { path, requestSerialize, responseDeserialize } = method;
  const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
  const heard: Response[] = [];
  stream.on('data', (response: Response) => heard.push(response));
  const ended = new Promise<string>((resolve) => {
    stream
      .on('end', () => resolve('OK'))
      .on('error', (error: ServiceError) =>
        resolve(`${status[error.code]} ${WritError.from(error, '', '').reason}`.trim()),
      );
  });
  return {
    stream,
    heard,
    send: (request) => void stream.write(request),
    async until(holds) {
      while (!holds(heard)) {
        const end = await Promise.race([once(stream, 'data').then(() => null), ended]);
        if (end !== null && !holds(heard)) throw new Error(`the stream ended with ${end}`);
      }
      return heard;
    },
    ended,
  };
}
