import { randomUUID } from 'node:crypto';
import {
  AuditServiceService,
  CutLogRequest,
  type CutLogResponse,
  EraseTextsRequest,
  type EraseTextsResponse,
  ExportEventsRequest,
  type ExportEventsResponse,
  FindIdsRequest,
  type FindIdsResponse,
  GetCheckpointRequest,
  type GetCheckpointResponse,
  ListCheckpointsRequest,
  type ListCheckpointsResponse,
  ListEventsRequest,
  type ListEventsResponse,
} from '../../gen/writ/v1/audit_service.js';
import * as maps from '../../gen/writ/v1/conflict_map_service.js';
import * as credentials from '../../gen/writ/v1/credential_service.js';
import * as fences from '../../gen/writ/v1/fence_service.js';
import * as leases from '../../gen/writ/v1/lease_service.js';
import * as namespaces from '../../gen/writ/v1/namespace_service.js';
import * as runs from '../../gen/writ/v1/run_service.js';
import {
  type CallOptions,
  type Channel,
  type Duplex,
  type Method,
  openChannel,
  type Repeat,
  type TokenSource,
} from './channel.js';
import type { TlsOptions } from './tls.js';

/** Where the coordinator is, and who calls it. */
export interface ConnectOptions {
  /**
   * `host:port`, or `https://host:port` for TLS. Or several, 1 to 16 equal replicas: one of them by chance is called, and
   * another when it is out of reach.
   */
  readonly endpoint: string | readonly string[];
  /**
   * The bearer token of the principal; may be left out where the client certificate says who calls. A function is asked
   * before every call, for tokens that are renewed.
   */
  readonly token?: TokenSource;
  /** Files for TLS, read anew for every connection; with them `host:port` is TLS too. */
  readonly tls?: TlsOptions;
  /** `beyond-loopback`: the token may travel unencrypted to other machines, where the network protects it. */
  readonly allowInsecure?: 'beyond-loopback';
  /** Filled in where a request names no namespace. Default: the coordinator's, "default". */
  readonly namespace?: string;
  /** For calls that say nothing else; at most 24 days. Default 10 s. */
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
    readonly amendWriteSet: Call<typeof leases.AmendWriteSetRequest, leases.AmendWriteSetResponse>;
    readonly renewLeases: Call<typeof leases.RenewLeasesRequest, leases.RenewLeasesResponse>;
    readonly releaseLease: Call<typeof leases.ReleaseLeaseRequest, leases.ReleaseLeaseResponse>;
    readonly revokeLease: Call<typeof leases.RevokeLeaseRequest, leases.RevokeLeaseResponse>;
    readonly takeOver: Call<typeof leases.TakeOverRequest, leases.TakeOverResponse>;
    readonly getLease: Call<typeof leases.GetLeaseRequest, leases.GetLeaseResponse>;
    readonly listLeases: Call<typeof leases.ListLeasesRequest, leases.ListLeasesResponse>;
    readonly previewWriteSet: Call<typeof leases.PreviewWriteSetRequest, leases.PreviewWriteSetResponse>;
    readonly findBlockers: Call<typeof leases.FindBlockersRequest, leases.FindBlockersResponse>;
    readonly listInDoubt: Call<typeof leases.ListInDoubtRequest, leases.ListInDoubtResponse>;
    readonly settleInDoubt: Call<typeof leases.SettleInDoubtRequest, leases.SettleInDoubtResponse>;
    readonly freeze: Call<typeof leases.FreezeRequest, leases.FreezeResponse>;
    readonly thaw: Call<typeof leases.ThawRequest, leases.ThawResponse>;
    readonly listFreezes: Call<typeof leases.ListFreezesRequest, leases.ListFreezesResponse>;
    /** The runner kit holds one. Keeps no process alive; not opened again by itself. */
    readonly session: (options?: CallOptions) => Promise<Duplex<leases.SessionRequest, leases.SessionResponse>>;
  };
  readonly fence: {
    /** Throws when it cannot be asked; `checkFence` of the target kit turns that into a denial. */
    readonly checkFence: Call<typeof fences.CheckFenceRequest, fences.CheckFenceResponse>;
    readonly reportWrite: Call<typeof fences.ReportWriteRequest, fences.ReportWriteResponse>;
    readonly reportOverride: Call<typeof fences.ReportOverrideRequest, fences.ReportOverrideResponse>;
    /** The target kit holds one. Keeps no process alive; not opened again by itself. */
    readonly streamFenceChecks: (
      options?: CallOptions,
    ) => Promise<Duplex<fences.StreamFenceChecksRequest, fences.StreamFenceChecksResponse>>;
    /** Opened by its first message; `createFenceView` of the target kit holds one. Not opened again by itself. */
    readonly watchFences: (
      options?: CallOptions,
    ) => Promise<Duplex<fences.WatchFencesRequest, fences.WatchFencesResponse>>;
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
    readonly beginRehearsal: Call<typeof maps.BeginRehearsalRequest, maps.BeginRehearsalResponse>;
    readonly recordRehearsal: Call<typeof maps.RecordRehearsalRequest, maps.RecordRehearsalResponse>;
    readonly listRehearsals: Call<typeof maps.ListRehearsalsRequest, maps.ListRehearsalsResponse>;
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
    readonly findIds: Call<typeof FindIdsRequest, FindIdsResponse>;
    readonly getCheckpoint: Call<typeof GetCheckpointRequest, GetCheckpointResponse>;
    readonly listCheckpoints: Call<typeof ListCheckpointsRequest, ListCheckpointsResponse>;
    readonly cutLog: Call<typeof CutLogRequest, CutLogResponse>;
    readonly eraseTexts: Call<typeof EraseTextsRequest, EraseTextsResponse>;
  };
  readonly namespaces: {
    readonly createNamespace: Call<typeof namespaces.CreateNamespaceRequest, namespaces.CreateNamespaceResponse>;
    readonly getNamespace: Call<typeof namespaces.GetNamespaceRequest, namespaces.GetNamespaceResponse>;
    readonly listNamespaces: Call<typeof namespaces.ListNamespacesRequest, namespaces.ListNamespacesResponse>;
  };
  /** Ends the connections; calls and streams under way are cancelled, and no more begin (CLIENT_CLOSED). Idempotent. */
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
  const endpoints = typeof endpoint === 'string' ? [endpoint] : endpoint;
  const channel = openChannel({ endpoints, token, tls, allowInsecure, timeoutMs, traceparent });
  const namespace = options.namespace ?? '';
  const make =
    <P, Q extends object>(message: Message<P, Q>) =>
    (partial: P) =>
      complete(message.fromPartial(partial), namespace);
  const call = caller(channel, make);
  return {
    namespace,
    lease: leaseCalls(call, channel),
    fence: fenceCalls(call, channel),
    credential: credentialCalls(call),
    conflictMap: mapCalls(call),
    run: runCalls(call),
    audit: {
      listEvents: call(AuditServiceService.listEvents, ListEventsRequest, 'repeatable'),
      exportEvents: (request, callOptions) =>
        channel.serverStream(AuditServiceService.exportEvents, make(ExportEventsRequest)(request), callOptions),
      findIds: call(AuditServiceService.findIds, FindIdsRequest, 'repeatable'),
      getCheckpoint: call(AuditServiceService.getCheckpoint, GetCheckpointRequest, 'repeatable'),
      listCheckpoints: call(AuditServiceService.listCheckpoints, ListCheckpointsRequest, 'repeatable'),
      cutLog: call(AuditServiceService.cutLog, CutLogRequest, 'repeatable'),
      eraseTexts: call(AuditServiceService.eraseTexts, EraseTextsRequest, 'repeatable'),
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

function leaseCalls(call: MakeCall, channel: Channel): WritClient['lease'] {
  const service = leases.LeaseServiceService;
  return {
    acquireWriteSet: call(service.acquireWriteSet, leases.AcquireWriteSetRequest, 'repeatable', ACQUIRE_TIMEOUT_MS),
    amendWriteSet: call(service.amendWriteSet, leases.AmendWriteSetRequest, 'repeatable'),
    renewLeases: call(service.renewLeases, leases.RenewLeasesRequest, 'once'),
    releaseLease: call(service.releaseLease, leases.ReleaseLeaseRequest, 'repeatable'),
    revokeLease: call(service.revokeLease, leases.RevokeLeaseRequest, 'repeatable'),
    takeOver: call(service.takeOver, leases.TakeOverRequest, 'repeatable', ACQUIRE_TIMEOUT_MS),
    getLease: call(service.getLease, leases.GetLeaseRequest, 'repeatable'),
    listLeases: call(service.listLeases, leases.ListLeasesRequest, 'repeatable'),
    previewWriteSet: call(service.previewWriteSet, leases.PreviewWriteSetRequest, 'repeatable'),
    findBlockers: call(service.findBlockers, leases.FindBlockersRequest, 'repeatable'),
    listInDoubt: call(service.listInDoubt, leases.ListInDoubtRequest, 'repeatable'),
    settleInDoubt: call(service.settleInDoubt, leases.SettleInDoubtRequest, 'repeatable'),
    freeze: call(service.freeze, leases.FreezeRequest, 'repeatable'),
    // A second try could take back what somebody has frozen meanwhile.
    thaw: call(service.thaw, leases.ThawRequest, 'once'),
    listFreezes: call(service.listFreezes, leases.ListFreezesRequest, 'repeatable'),
    session: (options) => channel.background(service.session, options),
  };
}

function fenceCalls(call: MakeCall, channel: Channel): WritClient['fence'] {
  const service = fences.FenceServiceService;
  return {
    checkFence: call(service.checkFence, fences.CheckFenceRequest, 'repeatable'),
    reportWrite: call(service.reportWrite, fences.ReportWriteRequest, 'repeatable'),
    reportOverride: call(service.reportOverride, fences.ReportOverrideRequest, 'repeatable'),
    streamFenceChecks: (options) => channel.background(service.streamFenceChecks, options),
    watchFences: (options) => channel.duplex(service.watchFences, options),
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
    // A second one says the same, and the newest counts.
    beginRehearsal: call(service.beginRehearsal, maps.BeginRehearsalRequest, 'repeatable'),
    recordRehearsal: call(service.recordRehearsal, maps.RecordRehearsalRequest, 'repeatable'),
    listRehearsals: call(service.listRehearsals, maps.ListRehearsalsRequest, 'repeatable'),
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
