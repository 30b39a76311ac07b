import { randomUUID } from 'node:crypto';
import {
  AuditServiceService,
  ExportEventsRequest,
  type ExportEventsResponse,
  GetCheckpointRequest,
  type GetCheckpointResponse,
  ListEventsRequest,
  type ListEventsResponse,
} from '../../gen/writ/v1/audit_service.js';
import * as maps from '../../gen/writ/v1/conflict_map_service.js';
import * as credentials from '../../gen/writ/v1/credential_service.js';
import { CheckFenceRequest, type CheckFenceResponse, FenceServiceService } from '../../gen/writ/v1/fence_service.js';
import * as leases from '../../gen/writ/v1/lease_service.js';
import * as namespaces from '../../gen/writ/v1/namespace_service.js';
import * as runs from '../../gen/writ/v1/run_service.js';
import { type CallOptions, type Channel, type Method, openChannel, type Repeat } from './channel.js';
import type { TlsOptions } from './tls.js';

export interface ConnectOptions {
  /** `host:port`, or `https://host:port` for TLS. */
  readonly endpoint: string;
  /** The bearer token of the principal; may be left out where the client certificate says who calls. */
  readonly token?: string;
  /** Files for TLS, read anew for every connection; with them `host:port` is TLS too. */
  readonly tls?: TlsOptions;
  /** `beyond-loopback`: the token may travel unencrypted to other machines, where the network protects it. */
  readonly allowInsecure?: 'beyond-loopback';
  /** Filled in where a request names no namespace. Default: the coordinator's, "default". */
  readonly namespace?: string;
  /** For calls that say nothing else. Default 10 s. */
  readonly timeoutMs?: number;
  /** W3C trace context for calls that bring none of their own. */
  readonly traceparent?: string;
}

/** A call of one method; fields that are left out have the defaults of the contract. */
export type Call<M extends Message<never, unknown>, S> = (
  request: Parameters<M['fromPartial']>[0],
  options?: CallOptions,
) => Promise<S>;

/** The generated code of a request. */
interface Message<P, Q> {
  readonly fromPartial: (partial: P) => Q;
}

/**
 * A coordinator, as a principal sees it: one promise per call, WritError on faults. Calls that change something are
 * repeated by themselves only after UNAVAILABLE and only where that is safe: with the same idempotency key (one is made
 * where the request has none), or where doing it twice is doing it once. RenewLeases and PutConflictMap never are.
 */
export interface WritClient {
  readonly namespace: string;
  readonly lease: {
    /** Blocks up to 20 s with `wait`, then answers `waiting`: call again with the same key. */
    readonly acquireWriteSet: Call<typeof leases.AcquireWriteSetRequest, leases.AcquireWriteSetResponse>;
    readonly renewLeases: Call<typeof leases.RenewLeasesRequest, leases.RenewLeasesResponse>;
    readonly releaseLease: Call<typeof leases.ReleaseLeaseRequest, leases.ReleaseLeaseResponse>;
    readonly revokeLease: Call<typeof leases.RevokeLeaseRequest, leases.RevokeLeaseResponse>;
    readonly getLease: Call<typeof leases.GetLeaseRequest, leases.GetLeaseResponse>;
    readonly listLeases: Call<typeof leases.ListLeasesRequest, leases.ListLeasesResponse>;
    readonly previewWriteSet: Call<typeof leases.PreviewWriteSetRequest, leases.PreviewWriteSetResponse>;
    readonly findBlockers: Call<typeof leases.FindBlockersRequest, leases.FindBlockersResponse>;
  };
  readonly fence: {
    /** Throws when it cannot be asked; `checkFence` of the target kit turns that into a denial. */
    readonly checkFence: Call<typeof CheckFenceRequest, CheckFenceResponse>;
  };
  readonly credential: {
    readonly issueCredential: Call<typeof credentials.IssueCredentialRequest, credentials.IssueCredentialResponse>;
    readonly introspectCredential: Call<
      typeof credentials.IntrospectCredentialRequest,
      credentials.IntrospectCredentialResponse
    >;
    readonly revokeCredential: Call<typeof credentials.RevokeCredentialRequest, credentials.RevokeCredentialResponse>;
    readonly getKeys: Call<typeof credentials.GetKeysRequest, credentials.GetKeysResponse>;
    readonly listSigningKeys: Call<typeof credentials.ListSigningKeysRequest, credentials.ListSigningKeysResponse>;
    readonly rotateSigningKey: Call<typeof credentials.RotateSigningKeyRequest, credentials.RotateSigningKeyResponse>;
    readonly retireSigningKey: Call<typeof credentials.RetireSigningKeyRequest, credentials.RetireSigningKeyResponse>;
  };
  readonly conflictMap: {
    readonly getConflictMap: Call<typeof maps.GetConflictMapRequest, maps.GetConflictMapResponse>;
    readonly putConflictMap: Call<typeof maps.PutConflictMapRequest, maps.PutConflictMapResponse>;
    readonly validateConflictMap: Call<typeof maps.ValidateConflictMapRequest, maps.ValidateConflictMapResponse>;
    readonly previewConflictMap: Call<typeof maps.PreviewConflictMapRequest, maps.PreviewConflictMapResponse>;
    readonly explainConflict: Call<typeof maps.ExplainConflictRequest, maps.ExplainConflictResponse>;
    readonly listConflictMapVersions: Call<
      typeof maps.ListConflictMapVersionsRequest,
      maps.ListConflictMapVersionsResponse
    >;
    readonly resolveResource: Call<typeof maps.ResolveResourceRequest, maps.ResolveResourceResponse>;
    readonly getTaskMatrix: Call<typeof maps.GetTaskMatrixRequest, maps.GetTaskMatrixResponse>;
    readonly listUnmatchedResources: Call<
      typeof maps.ListUnmatchedResourcesRequest,
      maps.ListUnmatchedResourcesResponse
    >;
  };
  readonly run: {
    readonly createRun: Call<typeof runs.CreateRunRequest, runs.CreateRunResponse>;
    readonly getRun: Call<typeof runs.GetRunRequest, runs.GetRunResponse>;
    readonly listRuns: Call<typeof runs.ListRunsRequest, runs.ListRunsResponse>;
    readonly updateRunState: Call<typeof runs.UpdateRunStateRequest, runs.UpdateRunStateResponse>;
    readonly stopRun: Call<typeof runs.StopRunRequest, runs.StopRunResponse>;
    readonly stopRuns: Call<typeof runs.StopRunsRequest, runs.StopRunsResponse>;
  };
  readonly audit: {
    readonly listEvents: Call<typeof ListEventsRequest, ListEventsResponse>;
    /** In order, complete up to the head at the time of the call. Not repeated by itself; go on with `afterRevision`. */
    readonly exportEvents: (
      request: Parameters<(typeof ExportEventsRequest)['fromPartial']>[0],
      options?: CallOptions,
    ) => AsyncIterable<ExportEventsResponse>;
    readonly getCheckpoint: Call<typeof GetCheckpointRequest, GetCheckpointResponse>;
  };
  readonly namespaces: {
    readonly createNamespace: Call<typeof namespaces.CreateNamespaceRequest, namespaces.CreateNamespaceResponse>;
    readonly getNamespace: Call<typeof namespaces.GetNamespaceRequest, namespaces.GetNamespaceResponse>;
    readonly listNamespaces: Call<typeof namespaces.ListNamespacesRequest, namespaces.ListNamespacesResponse>;
  };
  /** Ends the connection; calls under way are cancelled. Idempotent. */
  close(): void;
}

const DEFAULT_TIMEOUT_MS = 10_000;
/** A waiting AcquireWriteSet is answered after 20 s at the latest, and 1 s before the deadline. */
const ACQUIRE_TIMEOUT_MS = 25_000;

/**
 * Connects to a coordinator. Returns at once; the first call finds out whether it is there.
 *
 * @example
 * const writ = connectWrit({ endpoint: '127.0.0.1:7410', token });
 * const { run } = await writ.run.createRun({ purpose: 'promote', allowed, authorityEndsAt });
 * writ.close();
 */
export function connectWrit(options: ConnectOptions): WritClient {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const { endpoint, token, tls, allowInsecure, traceparent } = options;
  const channel = openChannel({ endpoint, token, tls, allowInsecure, timeoutMs, traceparent });
  const namespace = options.namespace ?? '';
  const make =
    <P, Q extends object>(message: Message<P, Q>) =>
    (partial: P) =>
      complete(message.fromPartial(partial), namespace);
  const call = caller(channel, make);
  return {
    namespace,
    lease: leaseCalls(call),
    fence: { checkFence: call(FenceServiceService.checkFence, CheckFenceRequest, 'repeatable') },
    credential: credentialCalls(call),
    conflictMap: mapCalls(call),
    run: runCalls(call),
    audit: {
      listEvents: call(AuditServiceService.listEvents, ListEventsRequest, 'repeatable'),
      exportEvents: (request, callOptions) =>
        channel.serverStream(AuditServiceService.exportEvents, make(ExportEventsRequest)(request), callOptions),
      getCheckpoint: call(AuditServiceService.getCheckpoint, GetCheckpointRequest, 'repeatable'),
    },
    namespaces: {
      createNamespace: call(
        namespaces.NamespaceServiceService.createNamespace,
        namespaces.CreateNamespaceRequest,
        'repeatable',
      ),
      getNamespace: call(namespaces.NamespaceServiceService.getNamespace, namespaces.GetNamespaceRequest, 'repeatable'),
      listNamespaces: call(
        namespaces.NamespaceServiceService.listNamespaces,
        namespaces.ListNamespacesRequest,
        'repeatable',
      ),
    },
    close: () => channel.close(),
  };
}

type MakeRequest = <P, Q extends object>(message: Message<P, Q>) => (partial: P) => Q;
type MakeCall = ReturnType<typeof caller>;

function caller(channel: Channel, make: MakeRequest) {
  return <P, Q extends object, S>(method: Method<Q, S>, message: Message<P, Q>, repeat: Repeat, timeoutMs?: number) => {
    const complete = make(message);
    return (partial: P, options?: CallOptions): Promise<S> =>
      channel.unary(method, repeat, complete(partial), options, timeoutMs);
  };
}

/** The client's namespace where the request names none, and an idempotency key, the same for every try of this call. */
function complete<Q extends object>(request: Q, namespace: string): Q {
  const fields = request as { namespace?: unknown; idempotencyKey?: unknown; request?: unknown };
  if (fields.namespace === '') fields.namespace = namespace;
  if (fields.idempotencyKey === '') fields.idempotencyKey = randomUUID();
  // PreviewWriteSet asks with a whole AcquireWriteSet inside.
  if (typeof fields.request === 'object' && fields.request !== null) complete(fields.request, namespace);
  return request;
}

function leaseCalls(call: MakeCall): WritClient['lease'] {
  const service = leases.LeaseServiceService;
  return {
    acquireWriteSet: call(service.acquireWriteSet, leases.AcquireWriteSetRequest, 'repeatable', ACQUIRE_TIMEOUT_MS),
    renewLeases: call(service.renewLeases, leases.RenewLeasesRequest, 'once'),
    releaseLease: call(service.releaseLease, leases.ReleaseLeaseRequest, 'repeatable'),
    revokeLease: call(service.revokeLease, leases.RevokeLeaseRequest, 'repeatable'),
    getLease: call(service.getLease, leases.GetLeaseRequest, 'repeatable'),
    listLeases: call(service.listLeases, leases.ListLeasesRequest, 'repeatable'),
    previewWriteSet: call(service.previewWriteSet, leases.PreviewWriteSetRequest, 'repeatable'),
    findBlockers: call(service.findBlockers, leases.FindBlockersRequest, 'repeatable'),
  };
}

function credentialCalls(call: MakeCall): WritClient['credential'] {
  const service = credentials.CredentialServiceService;
  return {
    // A second try issues a second credential, which is no harm: each ends within a minute.
    issueCredential: call(service.issueCredential, credentials.IssueCredentialRequest, 'repeatable'),
    introspectCredential: call(service.introspectCredential, credentials.IntrospectCredentialRequest, 'repeatable'),
    revokeCredential: call(service.revokeCredential, credentials.RevokeCredentialRequest, 'repeatable'),
    getKeys: call(service.getKeys, credentials.GetKeysRequest, 'repeatable'),
    listSigningKeys: call(service.listSigningKeys, credentials.ListSigningKeysRequest, 'repeatable'),
    // A second try of a first that came through would rotate twice.
    rotateSigningKey: call(service.rotateSigningKey, credentials.RotateSigningKeyRequest, 'once'),
    retireSigningKey: call(service.retireSigningKey, credentials.RetireSigningKeyRequest, 'repeatable'),
  };
}

function mapCalls(call: MakeCall): WritClient['conflictMap'] {
  const service = maps.ConflictMapServiceService;
  return {
    getConflictMap: call(service.getConflictMap, maps.GetConflictMapRequest, 'repeatable'),
    // Its expected version serves as the key: a second try of a first that came through is told of a conflict.
    putConflictMap: call(service.putConflictMap, maps.PutConflictMapRequest, 'once'),
    validateConflictMap: call(service.validateConflictMap, maps.ValidateConflictMapRequest, 'repeatable'),
    previewConflictMap: call(service.previewConflictMap, maps.PreviewConflictMapRequest, 'repeatable'),
    explainConflict: call(service.explainConflict, maps.ExplainConflictRequest, 'repeatable'),
    listConflictMapVersions: call(service.listConflictMapVersions, maps.ListConflictMapVersionsRequest, 'repeatable'),
    resolveResource: call(service.resolveResource, maps.ResolveResourceRequest, 'repeatable'),
    getTaskMatrix: call(service.getTaskMatrix, maps.GetTaskMatrixRequest, 'repeatable'),
    listUnmatchedResources: call(service.listUnmatchedResources, maps.ListUnmatchedResourcesRequest, 'repeatable'),
  };
}

function runCalls(call: MakeCall): WritClient['run'] {
  const service = runs.RunServiceService;
  return {
    createRun: call(service.createRun, runs.CreateRunRequest, 'repeatable'),
    getRun: call(service.getRun, runs.GetRunRequest, 'repeatable'),
    listRuns: call(service.listRuns, runs.ListRunsRequest, 'repeatable'),
    updateRunState: call(service.updateRunState, runs.UpdateRunStateRequest, 'repeatable'),
    stopRun: call(service.stopRun, runs.StopRunRequest, 'repeatable'),
    stopRuns: call(service.stopRuns, runs.StopRunsRequest, 'repeatable'),
  };
}
