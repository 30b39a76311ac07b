import { durationMs, timestampMicros } from '../../clients/common/time.js';
import {
  acquire,
  connectWrit,
  kindName,
  type Lease,
  RefusedError,
  type RequestedResource,
} from '../../clients/runner/index.js';
import type { Refusal } from '../../gen/writ/v1/types.js';
import { type HttpAnswer, sendJson } from './http.js';
import { type Running, runProgram } from './program.js';

/**
 * An agent run, a program of its own: `node agent.js`, configured by its first line on stdin. It follows its own
 * instructions, one command after another; the demo gives them out in the order of the story. Between two of them it
 * "thinks", and keeps its lease with the runner kit meanwhile, as long as its process runs.
 */

export interface AgentConfig {
  readonly coordinator: string;
  /** As the principal with the role `runner`. */
  readonly token: string;
  readonly runId: string;
  readonly targetUrl: string;
  /** Proves to the target which run this is. */
  readonly runSecret: string;
}

/** On what a write depends; nothing: the target should refuse it. */
export interface Condition {
  readonly ifMatch?: string;
  readonly ifNoneMatch?: '*';
}

export type AgentCommand =
  | {
      readonly do: 'acquire';
      readonly resources: readonly RequestedResource[];
      readonly purpose: string;
      readonly ttlMs: number;
      readonly waitMs: number;
    }
  | { readonly do: 'release' }
  | { readonly do: 'open'; readonly resource: string }
  | { readonly do: 'read'; readonly path: string }
  | {
      readonly do: 'write';
      /** Whose token is presented; one that the lease does not cover gets the token of what it does cover. */
      readonly resource: string;
      readonly path: string;
      readonly condition: Condition;
      readonly body: unknown;
      readonly requestId: string;
    };

export interface EntryView {
  readonly resource: string;
  readonly actions: readonly string[];
  /** Decimal. */
  readonly token: string;
  readonly impliedBy: string;
  readonly exclusive: boolean;
}

export interface BlockerView {
  readonly resource: string;
  readonly requestedResource: string;
  readonly rule: string;
  readonly resolver: string;
  readonly expiresAtMicros: number | null;
}

export interface RefusalView {
  readonly kind: string;
  readonly message: string;
  readonly blockers: readonly BlockerView[];
  readonly retryAfterMs: number | null;
  readonly action: string;
  readonly who: string;
  readonly retryable: boolean;
}

export type AcquireAnswer =
  | { readonly granted: { readonly leaseId: string; readonly entries: readonly EntryView[] } }
  | { readonly refused: RefusalView };

export type AgentAnswer = AcquireAnswer | HttpAnswer | { readonly released: string };

class Agent {
  private readonly writ;
  private lease: Lease | undefined;

  constructor(private readonly config: AgentConfig) {
    this.writ = connectWrit({ endpoint: config.coordinator, token: config.token });
  }

  async handle(command: AgentCommand): Promise<AgentAnswer> {
    switch (command.do) {
      case 'acquire':
        return this.acquire(command);
      case 'release': {
        const answer = await this.lease?.release();
        return { released: answer === undefined ? 'nothing_held' : 'released' };
      }
      case 'open':
        return this.send('POST', `/${command.resource}/open`, this.presenting(command.resource));
      case 'read':
        return this.send('GET', `/${command.path}`, {});
      case 'write':
        // A well-made agent would look at `lease.signal` first. This one had looked just before it was interrupted, as
        // any process can be, so it is for the target to refuse.
        return this.send(
          'PUT',
          `/${command.path}`,
          {
            ...this.presenting(command.resource),
            ...conditionHeaders(command.condition),
            'x-request-id': command.requestId,
          },
          command.body,
        );
    }
  }

  stop(): void {
    this.writ.close();
  }

  private async acquire(command: AgentCommand & { readonly do: 'acquire' }): Promise<AcquireAnswer> {
    const { resources, purpose, ttlMs, waitMs } = command;
    try {
      this.lease = await acquire(this.writ, { runId: this.config.runId, resources, purpose, ttlMs, waitMs });
    } catch (error) {
      if (error instanceof RefusedError) return { refused: viewOf(error.refusal) };
      throw error;
    }
    const entries = this.lease.entries.map(({ resource, actions, fencingToken, impliedBy, exclusive }) => {
      return { resource, actions, token: fencingToken.toString(), impliedBy, exclusive };
    });
    return { granted: { leaseId: this.lease.id, entries } };
  }

  private presenting(resource: string): Record<string, string> {
    if (this.lease === undefined) return {};
    const token = this.lease.token(resource) ?? this.lease.entries[0]?.fencingToken ?? 0n;
    return { 'writ-lease': this.lease.id, 'writ-fencing-token': token.toString() };
  }

  private send(method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<HttpAnswer> {
    const { targetUrl, runSecret } = this.config;
    const all = { ...headers, authorization: `Bearer ${runSecret}`, 'content-type': 'application/json' };
    return sendJson(new URL(path, targetUrl), method, all, body);
  }
}

function conditionHeaders({ ifMatch, ifNoneMatch }: Condition): Record<string, string> {
  return {
    ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
  };
}

function viewOf(refusal: Refusal): RefusalView {
  return {
    kind: kindName(refusal.kind),
    message: refusal.message,
    blockers: refusal.blockers.map((blocker) => ({
      resource: blocker.resource,
      requestedResource: blocker.requestedResource,
      rule: blocker.rule,
      resolver: blocker.resolver,
      expiresAtMicros: timestampMicros(blocker.expiresAt) ?? null,
    })),
    retryAfterMs: durationMs(refusal.retryAfter) ?? null,
    action: refusal.resolution?.action ?? '',
    who: refusal.resolution?.who ?? '',
    retryable: refusal.resolution?.retryable ?? false,
  };
}

async function start(config: AgentConfig): Promise<Running<AgentCommand, AgentAnswer>> {
  const agent = new Agent(config);
  return { ready: {}, handle: (command) => agent.handle(command), stop: async () => agent.stop() };
}

await runProgram(start);
