import { readdirSync } from 'node:fs';
import { type Client, Metadata, type MethodDefinition, type ServiceError, status } from '@grpc/grpc-js';

/** Every RPC of the contract, found where the generated code is: one that is new is called by the tests that walk all. */
export interface Rpc {
  /** `Service/Method`. */
  readonly method: string;
  readonly path: string;
  /** The request, filled in as far as it has these fields; empty where they do not fit. */
  encode(fields: object): Buffer;
  readonly definition: MethodDefinition<unknown, unknown>;
}

interface MessageType {
  fromPartial(fields: object): unknown;
  encode(message: unknown): { finish(): Uint8Array };
}

const GENERATED = new URL('../../src/gen/writ/v1/', import.meta.url);

export async function everyRpc(): Promise<Rpc[]> {
  const rpcs: Rpc[] = [];
  for (const file of readdirSync(GENERATED).filter((name) => name.endsWith('_service.ts'))) {
    const module = (await import(new URL(file, GENERATED).href)) as Record<string, unknown>;
    for (const [name, service] of Object.entries(module)) {
      if (!/ServiceService$/.test(name)) continue;
      for (const definition of Object.values(service as Record<string, MethodDefinition<unknown, unknown>>))
        rpcs.push(toRpc(module, definition));
    }
  }
  return rpcs;
}

function toRpc(module: Record<string, unknown>, definition: MethodDefinition<unknown, unknown>): Rpc {
  const method = definition.path.replace('/writ.v1.', '');
  const type = module[`${method.split('/')[1]}Request`] as MessageType | undefined;
  return {
    method,
    path: definition.path,
    definition,
    encode(fields) {
      if (type === undefined) return Buffer.alloc(0);
      try {
        return Buffer.from(type.encode(type.fromPartial(fields)).finish());
      } catch {
        return Buffer.alloc(0);
      }
    },
  };
}

/** What a call came to. */
export interface Outcome {
  readonly code: string;
  /** The messages of the answer. */
  readonly answers: readonly unknown[];
  readonly failure: { readonly details: string; readonly metadata: Metadata } | null;
}

/** Calls it over the wire and tells all that came back; never rejects. */
export function callRpc(client: Client, rpc: Rpc, request: Buffer, metadata: Metadata): Promise<Outcome> {
  const { path, definition } = rpc;
  const asBytes = (bytes: Buffer): Buffer => bytes;
  const isStream = definition.requestStream || definition.responseStream;
  // Some streams go on for as long as somebody listens.
  const deadline = Date.now() + (isStream ? 3_000 : 20_000);
  return new Promise((resolve) => {
    const answers: unknown[] = [];
    const failed = ({ code, details, metadata: told }: ServiceError) =>
      resolve({ code: status[code] ?? '', answers, failure: { details, metadata: told } });
    const ended = () => resolve({ code: 'OK', answers, failure: null });
    if (isStream) {
      const stream = client
        .makeBidiStreamRequest(path, asBytes, definition.responseDeserialize, metadata, { deadline })
        .on('data', (answer) => answers.push(answer))
        .on('error', failed)
        .on('end', ended);
      stream.write(request);
      stream.end();
      return;
    }
    client.makeUnaryRequest(
      path,
      asBytes,
      definition.responseDeserialize,
      request,
      metadata,
      { deadline },
      (error, answer) => {
        if (error !== null) return failed(error);
        answers.push(answer);
        ended();
      },
    );
  });
}

/** Metadata with this `authorization`; undefined: none. */
export function authorized(authorization: string | undefined, more: Readonly<Record<string, string>> = {}): Metadata {
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  for (const [key, value] of Object.entries(more)) metadata.set(key, value);
  return metadata;
}
