import { randomUUID } from 'node:crypto';
import {
  type MatchedWrite,
  matchRoute,
  NO_LEASE,
  parseRouteTable,
  ResourcePattern,
  type RouteTable,
} from '../../route-table/index.js';
import type { WritClient } from '../common/connect.js';
import type { WritError } from '../common/errors.js';
import { checkFence, type FenceQuestion } from './check.js';
import type { Credential } from './credential.js';
import { CredentialRefused } from './credential-refused.js';
import type { PresentedProof } from './dpop.js';
import type { FenceView } from './fence-view.js';
import type { Asked, GateCaller, GateDecision, GateRequest } from './gate-decision.js';
import { type Authority, readPresented } from './gate-presented.js';
import { credentialRefused, malformed, nothingPresented, undecided, unrouted } from './gate-problems.js';
import { CheckSlots } from './gate-slots.js';
import { byCredential, byOverride, byVerdict, refused } from './gate-verdicts.js';
import { ActiveOverrides, type Override, type OverrideGrant, type OverrideRecord } from './override.js';
import type { OverrideJournal } from './override-journal.js';
import { OverrideReporter } from './override-reporter.js';
import type { CredentialVerifier } from './verify-credential.js';

/** How a gate decides. */
export interface GateOptions {
  /** As the principal that the map calls the owner service. */
  readonly client: WritClient;
  /** A route table, or its document as YAML or JSON has it. What is wrong with it is thrown at once, all of it. */
  readonly routes: RouteTable | object;
  /** Default: the client's. */
  readonly namespace?: string;
  /** What a run may present. Default: both. Without `lease` nobody gets by without a credential, which may be bound to a key. */
  readonly accept?: readonly ('credential' | 'lease')[];
  /** Refuses credentials that are not genuine before the coordinator is asked, and checks DPoP proofs. */
  readonly verifier?: CredentialVerifier;
  /**
   * Patterns of resources whose kind is `validation: local` in the map: a verified credential decides, and nobody is
   * asked. Only for those: of others the coordinator promises an end at once (P3), which this cannot know of.
   */
  readonly local?: readonly string[];
  /**
   * Decides about kinds with `validation: view` where it can allow a write; the coordinator is asked about all else. Of the
   * same namespace; it stays the caller's to close.
   */
  readonly view?: Pick<FenceView, 'check'>;
  /** The guard where the data lives. Routes may say `when_unreachable: allow_guarded` only with one. */
  readonly guard?: object;
  /** Bounds of what the gate asks the coordinator. */
  readonly checks?: {
    /** Until a check is given up and the write refused, waiting included. Default 2 s. */
    readonly timeoutMs?: number;
    /** Checks under way at a time. Default 256. */
    readonly maxInFlight?: number;
    /** Requests that wait for that; more are refused at once. Default 1,024. */
    readonly maxWaiting?: number;
  };
  /** Lets people override in an emergency (C12). Absent: nobody can. */
  readonly overrides?: {
    readonly journal: OverrideJournal;
    /** In force from the start, as a configuration file says; those that are over are left out. */
    readonly declared?: readonly (OverrideGrant & { readonly id: string })[];
  };
  /** Hears what is for the service's own log: a coordinator that cannot be asked, a report that does not get through. */
  readonly onProblem?: (what: string, error: unknown) => void;
}

/** The gate of a target: what stands between a request and its handler. */
export interface Gate {
  /** The table that it decides by. */
  readonly routes: RouteTable;
  /** Decides about one request. Never throws for want of an answer: what cannot be decided is refused (P8). */
  decide(request: GateRequest): Promise<GateDecision>;
  /** Lets a person's own requests in for a while (C12). Resolves when that is on record; who may do this is the service's to decide. */
  override(grant: OverrideGrant): Promise<Override>;
  /** Ends an override before its time; false: there was none in force. */
  endOverride(id: string): boolean;
  /** Stops reporting; what the coordinator was not told stays in the journal. Idempotent. */
  close(): Promise<void>;
}

const TIMEOUT_MS = 2_000;
const MAX_IN_FLIGHT = 256;
const MAX_WAITING = 1_024;

/**
 * Makes the gate of a service: it maps a request to its writes by the route table, asks the coordinator, and refuses
 * with a problem that an agent can act on. Middleware for servers is made of it: `honoGate`, `expressGate`, `grpcGate`.
 *
 * @example
 * const gate = createGate({
 *   client: connectWrit({ endpoint: '127.0.0.1:7410', token }),
 *   routes: readRouteTable('routes.yaml'),
 * });
 * const decision = await gate.decide({ method: 'POST', path: '/releases/prod-eu/promote', headers: request.headers });
 * if (!decision.allowed) return Response.json(decision.problem, { status: decision.problem.status });
 */
export function createGate(options: GateOptions): Gate {
  return new TargetGate(options);
}

class TargetGate implements Gate {
  readonly routes: RouteTable;
  private readonly namespace: string;
  private readonly local: readonly ResourcePattern[];
  private readonly accept: ReadonlySet<string>;
  private readonly slots: CheckSlots;
  private readonly timeoutMs: number;
  private readonly overrides = new ActiveOverrides();
  private readonly reporter: OverrideReporter | undefined;
  /** What was declared is on record before anything is let in by it. */
  private readonly declared: Promise<void>;

  constructor(private readonly options: GateOptions) {
    const { client, routes, local = [], accept = ['credential', 'lease'], checks = {}, overrides } = options;
    this.routes = isTable(routes) ? routes : parseRouteTable(routes);
    this.local = local.map((pattern) => ResourcePattern.of(pattern));
    this.accept = new Set(accept);
    this.timeoutMs = checks.timeoutMs ?? TIMEOUT_MS;
    this.slots = new CheckSlots(checks.maxInFlight ?? MAX_IN_FLIGHT, checks.maxWaiting ?? MAX_WAITING);
    refuseUnprovable(options, this.routes);
    this.namespace = options.namespace ?? (client.namespace === '' ? 'default' : client.namespace);
    const { namespace } = this;
    if (overrides !== undefined)
      this.reporter = new OverrideReporter({ client, namespace, journal: overrides.journal, onProblem: this.tell });
    const now = Date.now();
    const declared = (overrides?.declared ?? []).filter(({ until }) => until.getTime() > now);
    this.declared = this.begin(declared.map((grant) => this.overrides.check(grant, now)));
    this.declared.catch((error: unknown) => this.tell('declared overrides could not be recorded', error));
    this.reporter?.nudge();
  }

  async decide(request: GateRequest): Promise<GateDecision> {
    const presented = readPresented(request.headers);
    if ('malformed' in presented) return refused('', malformed(presented.malformed));
    const { requestId } = presented;
    const match = matchRoute(this.routes, request);
    switch (match.kind) {
      case 'malformed':
        return refused(requestId, malformed(match.message, requestId));
      case 'unrouted':
        return refused(requestId, unrouted(match.message, requestId));
      case 'writes':
        return this.decideWrites({ request, presented, route: match.route, writes: match.writes });
      default:
        return { allowed: true, kind: match.kind, requestId, route: match.route };
    }
  }

  async override(grant: OverrideGrant): Promise<Override> {
    if (this.options.overrides === undefined) throw new TypeError('this gate has no journal for overrides');
    const override = this.overrides.check(grant, Date.now());
    await this.begin([override]);
    this.reporter?.nudge();
    return override;
  }

  endOverride(id: string): boolean {
    return this.overrides.end(id);
  }

  async close(): Promise<void> {
    await this.reporter?.close();
  }

  private async begin(overrides: readonly Override[]): Promise<void> {
    for (const override of overrides) {
      await this.options.overrides?.journal.append({ override, use: null });
      this.overrides.add(override, Date.now());
    }
  }

  private async decideWrites(asked: Asked): Promise<GateDecision> {
    const { presented, request, writes } = asked;
    const { authority, requestId } = presented;
    const [first] = writes;
    if (authority.kind === 'none') {
      const overridden = await this.byOverride(asked);
      if (overridden !== null) return overridden;
    } else if (!this.accept.has(authority.kind)) {
      return refused(requestId, nothingPresented(first, requestId));
    }
    if (authority.kind === 'lease' && authority.tokens.length !== 1 && authority.tokens.length !== writes.length) {
      const detail = `writ-fencing-token must hold one token, or one for each of the ${writes.length} writes of this route.`;
      return refused(requestId, malformed(detail, requestId));
    }
    const credential = await this.verified(authority, request).catch((error: unknown) => {
      if (error instanceof CredentialRefused) return error;
      throw error;
    });
    if (credential instanceof CredentialRefused)
      return refused(requestId, credentialRefused(credential, first, requestId, this.options.verifier?.nonce()));
    const seen = this.byView(asked);
    if (seen !== null) return seen;
    const local = credential !== undefined && this.isLocal(writes) ? this.byCredential(asked, credential) : null;
    return local ?? this.ask(asked, credential);
  }

  /** Refuses what is not genuine before anybody is asked; undefined: there is no credential, or nothing to verify it with. */
  private async verified(authority: Authority, { method, url, caller }: GateRequest): Promise<Credential | undefined> {
    const { verifier } = this.options;
    if (authority.kind !== 'credential' || verifier === undefined) return undefined;
    const { token, withProof, proof } = authority;
    // Only the scheme says that there is a proof: a bearer's credential that is bound to a key is refused (RFC 9449, 7.2).
    const dpop = withProof ? proofOf(proof, method, url) : undefined;
    return verifier.verifyCredential(token, {
      ...(caller?.certificateThumbprint === undefined ? {} : { certificateThumbprint: caller.certificateThumbprint }),
      ...(dpop === undefined ? {} : { dpop }),
    });
  }

  private isLocal(writes: readonly MatchedWrite[]): boolean {
    return writes.every(({ resource }) => this.local.some((pattern) => pattern.matches(resource)));
  }

  /** Null: there is no view, or it does not allow the writes; what it denies may be out of date, and is to be recorded (A1). */
  private byView(asked: Asked): GateDecision | null {
    const { view } = this.options;
    if (view === undefined || asked.presented.authority.kind !== 'lease') return null;
    const decision = view.check(this.question(asked, undefined));
    const allowed = decision.allowed && decision.writes.every((write) => !write.observedOnly);
    return allowed ? byVerdict(asked, decision, 'view') : null;
  }

  private byCredential(asked: Asked, credential: Credential): GateDecision | null {
    return byCredential(asked, credential, this.namespace);
  }

  private async ask(asked: Asked, credential: Credential | undefined): Promise<GateDecision> {
    const { presented, route, writes, request } = asked;
    const { requestId } = presented;
    let waited = false;
    const decision = await this.slots.run(this.timeoutMs, (leftMs, after) => {
      waited = after;
      return checkFence(this.options.client, this.question(asked, credential), {
        timeoutMs: leftMs,
        requestId,
        ...(presented.traceparent === undefined ? {} : { traceparent: presented.traceparent }),
        ...(request.signal === undefined ? {} : { signal: request.signal }),
      });
    });
    if (typeof decision !== 'string' && decision.error === undefined)
      return byVerdict(asked, decision, 'coordinator', credential);
    if (typeof decision !== 'string' && request.signal?.aborted !== true)
      this.tell('a fence check could not be made', decision.error);
    const reason = typeof decision === 'string' ? 'gate_overloaded' : decision.reason;
    // Misconfiguration is no outage: what is wrong with the question is wrong with every one.
    if (reason === 'check_failed') return refused(requestId, undecided(reason, UNDECIDED, writes[0], requestId, false));
    const outage = typeof decision !== 'string' && decision.error !== undefined && isOutOfReach(decision.error, waited);
    const guarded = outage && route.whenUnreachable === 'allow_guarded' && credential !== undefined;
    const decided = guarded ? this.byCredential(asked, credential) : null;
    return decided ?? refused(requestId, undecided(reason, UNDECIDED, writes[0], requestId));
  }

  private question({ presented, writes, request }: Asked, credential: Credential | undefined): FenceQuestion {
    const { authority, observedVersion } = presented;
    const observed = observedVersion === undefined ? {} : { observedVersion };
    const tokens = authority.kind === 'lease' ? authority.tokens : [];
    const { caller } = request;
    const presenter = presenterOf(caller, credential);
    return {
      ...(authority.kind === 'credential'
        ? { credential: authority.token }
        : { leaseId: authority.kind === 'lease' ? authority.leaseId : NO_LEASE }),
      ...(authority.kind === 'credential' && presenter !== undefined ? { presenter } : {}),
      ...(caller?.runId === undefined ? {} : { presenterRunId: caller.runId }),
      writes: writes.map(({ resource, action }, index) => {
        const token = tokens[index] ?? tokens[0];
        return { resource, action, ...observed, ...(token === undefined ? {} : { token }) };
      }),
      // Each request is an attempt of its own, whatever id its caller sends: one admission never stands for two (R4).
      requestId: randomUUID(),
      namespace: this.namespace,
    };
  }

  /** Null: no override of this person covers all the writes. */
  private async byOverride(asked: Asked): Promise<GateDecision | null> {
    const { presented, request, writes } = asked;
    const person = request.caller?.person;
    const journal = this.options.overrides?.journal;
    if (person === undefined || journal === undefined) return null;
    await this.declared.catch(() => undefined);
    const now = Date.now();
    const override = this.overrides.find(
      person,
      writes.map(({ resource }) => resource),
      now,
    );
    if (override === undefined) return null;
    const { requestId, observedVersion } = presented;
    const record: OverrideRecord = {
      override,
      use: {
        id: randomUUID(),
        requestId,
        usedAt: new Date(now),
        writes: writes.map(({ resource, action }) => ({ resource, action, observedVersion })),
      },
    };
    try {
      await journal.append(record);
    } catch (error) {
      this.tell('the use of an override could not be recorded', error);
      const detail = 'The override cannot be recorded now, and without that nothing is let in.';
      return refused(requestId, undecided('override_not_recorded', detail, writes[0], requestId));
    }
    this.reporter?.nudge();
    // It can have ended while its use was being recorded; who ended it relies on that.
    return this.overrides.isInForce(override, Date.now()) ? byOverride(asked, override, now) : null;
  }

  private readonly tell = (what: string, error: unknown): void => this.options.onProblem?.(what, error);
}

const UNDECIDED = 'The coordinator cannot be asked now, so nothing is written.';

/**
 * Whether no coordinator could be reached, which is all that `allow_guarded` is for: one that is there, and refuses or
 * limits the call, gives a reason. Time that went by in the gate's own queue says nothing of the coordinator: else
 * whoever fills the queue could have the checks of everybody skipped (P3).
 */
function isOutOfReach({ code, reason }: WritError, waited: boolean): boolean {
  return reason === '' && (code === 'UNAVAILABLE' || (code === 'DEADLINE_EXCEEDED' && !waited));
}

function isTable(routes: unknown): routes is RouteTable {
  return typeof routes === 'object' && routes !== null && 'byHost' in routes;
}

/** A route that lets writes in unasked needs what makes that safe: a credential that is verified here, and a guard. */
function refuseUnprovable({ guard, verifier, local = [] }: GateOptions, { routes }: RouteTable): void {
  const bold = routes.find((route) => route.kind === 'writes' && route.whenUnreachable === 'allow_guarded');
  const missing = verifier === undefined ? 'verifier' : 'guard';
  if (bold !== undefined && (guard === undefined || verifier === undefined))
    throw new TypeError(`routes[${bold.index}] says when_unreachable: allow_guarded: give the gate its ${missing} too`);
  if (local.length > 0 && verifier === undefined)
    throw new TypeError('resources of local kinds are decided by the credential: give the gate its verifier too');
}

function proofOf(proof: string | undefined, method: string, url: string | undefined): PresentedProof {
  if (proof === undefined) throw new CredentialRefused('proof_missing', 'it came by the scheme DPoP, without a proof');
  if (url !== undefined) return { proof, method, url };
  throw new CredentialRefused('proof_invalid', 'this service does not know the URL that the proof must be for');
}

/** The key that the presenter proved to have: by the session's certificate, or by the proof that was verified here. */
function presenterOf(caller: GateCaller | undefined, credential: Credential | undefined): FenceQuestion['presenter'] {
  const cnf = credential?.claims.cnf;
  if (cnf !== undefined && 'jkt' in cnf) return { jkt: cnf.jkt };
  const thumbprint = caller?.certificateThumbprint;
  return thumbprint === undefined ? undefined : { x5tS256: thumbprint };
}
