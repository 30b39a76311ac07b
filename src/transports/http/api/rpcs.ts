import {
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import type { Method } from '../../../auth/roles.js';
import { commentOn } from '../../../contract/comments.js';
import { contractTypes } from '../../../contract/descriptors.js';
import { AuditServiceService } from '../../../gen/writ/v1/audit_service.js';
import { ConflictMapServiceService } from '../../../gen/writ/v1/conflict_map_service.js';
import { CredentialServiceService } from '../../../gen/writ/v1/credential_service.js';
import { FenceServiceService } from '../../../gen/writ/v1/fence_service.js';
import { LeaseServiceService } from '../../../gen/writ/v1/lease_service.js';
import { NamespaceServiceService } from '../../../gen/writ/v1/namespace_service.js';
import { RunServiceService } from '../../../gen/writ/v1/run_service.js';
import { turnOfOnesOwn } from '../../../platform/portions.js';

/** An RPC of the contract, as far as HTTP reads its request and writes its answer. */
export interface Rpc {
  readonly method: Method;
  readonly input: DescMessage;
  readonly output: DescMessage;
  /** What the contract says about it. */
  readonly comment: string;
  /** Throws where it is no such message. */
  read(json: JsonValue): object;
  write(answer: object): Promise<JsonObject>;
}

/** What is generated for one RPC: its messages to bytes and back. */
interface Generated {
  requestDeserialize(bytes: Buffer): object;
  responseSerialize(answer: never): Buffer;
  responseDeserialize(bytes: Buffer): object;
}

const SERVICES: Readonly<Record<string, Readonly<Record<string, Generated>>>> = {
  LeaseService: LeaseServiceService,
  FenceService: FenceServiceService,
  CredentialService: CredentialServiceService,
  RunService: RunServiceService,
  ConflictMapService: ConflictMapServiceService,
  AuditService: AuditServiceService,
  NamespaceService: NamespaceServiceService,
};

export function rpcOf(method: Method): Rpc {
  const [service = '', name = ''] = method.split('/');
  const described = contractTypes()
    .getService(`writ.v1.${service}`)
    ?.methods.find((one) => one.name === name);
  const generated = SERVICES[service]?.[localName(name)];
  if (described === undefined || generated === undefined) throw new Error(`the contract has no ${method}`);
  const { input, output } = described;
  return {
    method,
    input,
    output,
    comment: commentOn(`writ.v1.${service}.${name}`),
    read: (json) => generated.requestDeserialize(Buffer.from(toBinary(input, fromJson(input, json)))),
    write: (answer) => written({ output, generated }, answer),
  };
}

/** Of a list that are converted in one turn of the event loop. */
const ITEMS_PER_TURN = 32;

/** Lists of a page's length are converted a portion at a time: a thousand leases or events take some 50 ms. */
async function written(
  { output, generated }: { readonly output: DescMessage; readonly generated: Generated },
  answer: object,
): Promise<JsonObject> {
  // Also what is zero, false or empty: who reads with curl should not have to know what is missing.
  const jsonOf = (part: object): JsonObject => {
    const message = fromBinary(output, generated.responseSerialize(part as never));
    return toJson(output, message, { alwaysEmitImplicit: true }) as JsonObject;
  };
  const all = answer as Readonly<Record<string, unknown>>;
  const long = output.fields.filter(
    ({ fieldKind, localName: name }) =>
      fieldKind === 'list' && (all[name] as readonly unknown[]).length > ITEMS_PER_TURN,
  );
  if (long.length === 0) return jsonOf(answer);
  const json = jsonOf({ ...answer, ...Object.fromEntries(long.map((field) => [field.localName, []])) });
  const nothing = generated.responseDeserialize(Buffer.alloc(0));
  for (const { localName: name, jsonName } of long) {
    const items = all[name] as readonly unknown[];
    const parts: JsonValue[] = [];
    for (let start = 0; start < items.length; start += ITEMS_PER_TURN) {
      await turnOfOnesOwn();
      const portion = jsonOf({ ...nothing, [name]: items.slice(start, start + ITEMS_PER_TURN) });
      parts.push(...(portion[jsonName] as JsonValue[]));
    }
    json[jsonName] = parts;
  }
  return json;
}

/** A method as code names it. */
export function localName(name: string): string {
  return `${name.charAt(0).toLowerCase()}${name.slice(1)}`;
}
