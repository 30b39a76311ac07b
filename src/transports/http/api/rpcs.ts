import { type DescMessage, fromBinary, fromJson, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf';
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

/** An RPC of the contract, as far as HTTP reads its request and writes its answer. */
export interface Rpc {
  readonly method: Method;
  readonly input: DescMessage;
  readonly output: DescMessage;
  /** What the contract says about it. */
  readonly comment: string;
  /** Throws where it is no such message. */
  read(json: JsonValue): object;
  write(answer: object): JsonValue;
}

/** What is generated for one RPC: its messages to bytes and back. */
interface Generated {
  requestDeserialize(bytes: Buffer): object;
  responseSerialize(answer: never): Buffer;
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
    // Also what is zero, false or empty: who reads with curl should not have to know what is missing.
    write: (answer) =>
      toJson(output, fromBinary(output, generated.responseSerialize(answer as never)), { alwaysEmitImplicit: true }),
  };
}

/** A method as code names it. */
export function localName(name: string): string {
  return `${name.charAt(0).toLowerCase()}${name.slice(1)}`;
}
