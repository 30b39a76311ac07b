import { once } from 'node:events';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A call as it came back: trailers, or the headers where there is nothing else. */
export interface RawAnswer {
  readonly status: number;
  readonly message: string;
  readonly headers: IncomingHttpHeaders;
}

export interface RawCall {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whole gRPC frames. */
  readonly body?: Buffer;
  /** Sent in place of all headers, as they are: also several of one name. */
  readonly rawHeaders?: readonly (readonly [string, string])[];
}

/** A message with its gRPC prefix. */
export function framed(message: Buffer, compressed = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = compressed;
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Calls without a gRPC client, which would put right what is to be sent wrong. */
export async function rawCall(address: string, call: RawCall): Promise<RawAnswer> {
  const { path, headers = {}, body = framed(Buffer.alloc(0)), rawHeaders } = call;
  const proxy = rawHeaders === undefined ? null : await headerProxy(address, rawHeaders);
  const session = connectHttp2(`http://${proxy?.address ?? address}`);
  try {
    const sent = { ':method': 'POST', ':path': path, te: 'trailers', 'content-type': 'application/grpc', ...headers };
    const stream = session.request(sent);
    let found: IncomingHttpHeaders = {};
    const merge = (more: IncomingHttpHeaders): void => {
      found = { ...found, ...more };
    };
    stream.on('response', merge).on('trailers', merge).resume();
    stream.end(body);
    await Promise.race([once(stream, 'close'), once(session, 'error').then(([error]) => Promise.reject(error))]);
    return {
      status: Number(found['grpc-status'] ?? Number.NaN),
      message: decodeURI(String(found['grpc-message'] ?? '')),
      headers: found,
    };
  } finally {
    session.destroy();
    proxy?.close();
  }
}

const PREFACE_BYTES = 24;
const FRAME_HEADER_BYTES = 9;
const HEADERS = 1;
const END_HEADERS = 4;
const END_STREAM = 1;

/**
 * A proxy between one HTTP/2 client and the server that puts these headers in place of those that the client sends:
 * Node's client cannot send a header like `authorization` twice.
 */
async function headerProxy(
  address: string,
  headers: readonly (readonly [string, string])[],
): Promise<{ readonly address: string; close(): void }> {
  const [host, port] = address.split(':');
  const sockets: Socket[] = [];
  const proxy = createServer((client) => {
    const server = connect(Number(port), host);
    sockets.push(client, server);
    server.pipe(client).on('error', () => undefined);
    let pending = Buffer.alloc(0);
    let greeted = false;
    client
      .on('error', () => undefined)
      .on('data', (data) => {
        pending = Buffer.concat([pending, data]);
        if (!greeted && pending.length >= PREFACE_BYTES) {
          server.write(pending.subarray(0, PREFACE_BYTES));
          pending = pending.subarray(PREFACE_BYTES);
          greeted = true;
        }
        while (greeted && pending.length >= FRAME_HEADER_BYTES) {
          const end = FRAME_HEADER_BYTES + pending.readUIntBE(0, 3);
          if (pending.length < end) break;
          server.write(pending[3] === HEADERS ? headersFrame(pending, headers) : pending.subarray(0, end));
          pending = pending.subarray(end);
        }
      });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    address: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    close() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}

/** A HEADERS frame for the same stream, each header a literal that is not indexed (RFC 7541, 6.2.2). */
function headersFrame(original: Buffer, headers: readonly (readonly [string, string])[]): Buffer {
  const block = Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]));
  const frame = Buffer.alloc(FRAME_HEADER_BYTES);
  frame.writeUIntBE(block.length, 0, 3);
  frame[3] = HEADERS;
  frame[4] = END_HEADERS | ((original[4] ?? 0) & END_STREAM);
  original.copy(frame, 5, 5, FRAME_HEADER_BYTES);
  return Buffer.concat([frame, block]);
}

function literal(value: string): Buffer {
  const text = Buffer.from(value, 'latin1');
  if (text.length < 127) return Buffer.concat([Buffer.from([text.length]), text]);
  const length = [127];
  let rest = text.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), text]);
}
