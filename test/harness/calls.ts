import { randomUUID } from 'node:crypto';
import { timestampMicros, toDuration, toTimestamp } from '../../src/clients/common/time.js';
import { FenceReason } from '../../src/gen/writ/v1/fence_service.js';
import { RunState } from '../../src/gen/writ/v1/run_service.js';
import { EndReason, RefusalKind } from '../../src/gen/writ/v1/types.js';
import type { Replica } from './cluster.js';
import type { AskedEntry, CallShapes, CheckedWrite, SeenLease } from './history.js';
import type { Recorder } from './recorder.js';
import { type Presentable, presentable, presentables, releaseTold, seenLease, wireEntry, word } from './seen.js';
import type { Streams } from './streams.js';

const TIMEOUT_MS = 4_000;

export interface Amendment {
  readonly add?: readonly AskedEntry[];
  readonly remove?: readonly string[];
}

type AcquireTold = NonNullable<CallShapes['acquire']['told']>;

/** The answer, and with a lease the credentials' tokens. */
export type Acquired = AcquireTold & {
  readonly tokens: readonly Presentable[];
  /** Of a place that a session keeps: when something has come of it, or the session has ended. Else: now. */
  readonly settled: Promise<void>;
};

/**
 * What a client asks of a replica, once and without trying again, written down in the history. Everything else is the
 * contract's.
 */
export class Caller {
  constructor(
    private readonly recorder: Recorder,
    readonly name: string,
    private readonly timeoutMs = TIMEOUT_MS,
    /** Asks on these what can be asked on a stream; null: by calls. */
    private readonly streamsOf: ((replica: Replica) => Streams) | null = null,
  ) {}

  async createRun(
    replica: Replica,
    authoritySeconds = 600,
    { key = randomUUID(), parentRunId = '' }: { readonly key?: string; readonly parentRunId?: string } = {},
  ): Promise<string | null> {
    const authorityEndsAt = Math.floor(Date.now() * 1_000) + authoritySeconds * 1_000_000;
    const told = await this.call('create_run', replica, { key, authorityEndsAt }, async (options) => {
      const { run, logRevision } = await replica.client('runner').run.createRun(
        {
          purpose: 'the fault harness',
          parentRunId,
          allowed: [{ pattern: '{all...}', actions: ['*'] }],
          authorityEndsAt: toTimestamp(authorityEndsAt),
          idempotencyKey: key,
        },
        options,
      );
      return { runId: run?.runId ?? '', revision: Number(logRevision) };
    });
    return told?.runId ?? null;
  }

  async acquire(
    replica: Replica,
    {
      delegatedFrom = '',
      ...asked
    }: {
      readonly runId: string;
      readonly key: string;
      readonly entries: readonly AskedEntry[];
      readonly delegatedFrom?: string;
    },
    more: { readonly ttlMs?: number; readonly waitMs?: number; readonly audiences?: readonly string[] } = {},
  ): Promise<Acquired | null> {
    const { ttlMs, waitMs = 0, audiences = [] } = more;
    const tokens: Presentable[] = [];
    let settled = Promise.resolve();
    const told = await this.call(
      'acquire',
      replica,
      { ...asked, waits: waitMs > 0, delegatedFrom },
      async (options) => {
        const answer = await this.asks(replica).acquireWriteSet(
          {
            runId: asked.runId,
            delegatedFrom,
            idempotencyKey: asked.key,
            entries: asked.entries.map(wireEntry),
            audiences: [...audiences],
            ...(ttlMs === undefined ? {} : { ttl: toDuration(ttlMs) }),
            ...(waitMs === 0 ? {} : { wait: toDuration(waitMs) }),
          },
          options,
        );
        tokens.push(...answer.credentials.flatMap(presentables));
        const common = { revision: Number(answer.logRevision), credentials: tokens.map(({ seen }) => seen) };
        const { outcome } = answer;
        if (outcome?.$case === 'lease') return { outcome: 'lease', lease: seenLease(outcome.value), ...common };
        if (outcome?.$case === 'refusal') {
          const refusal = word(RefusalKind, outcome.value.kind, 'REFUSAL_KIND_');
          return { outcome: 'refusal', refusal, cycle: outcome.value.cycle, ...common };
        }
        if (outcome !== undefined) settled = this.streamsOf?.(replica).settled(outcome.value.requestId) ?? settled;
        return { outcome: 'waiting', ...common };
      },
    );
    return told === null ? null : { ...told, tokens, settled };
  }

  renew(replica: Replica, { runId, leaseId }: Pick<SeenLease, 'runId' | 'leaseId'>, progressMarker?: string) {
    return this.call('renew', replica, { runId, leaseId }, async (options) => {
      const renewal = { leaseId, ...(progressMarker === undefined ? {} : { progressMarker }) };
      const answer = await this.asks(replica).renewLeases({ runId, renewals: [renewal] }, options);
      const outcome = answer.results[0]?.outcome;
      const revision = Number(answer.logRevision);
      return outcome?.$case === 'lease'
        ? { outcome: 'lease', lease: seenLease(outcome.value), revision }
        : { outcome: 'refusal', refusal: word(RefusalKind, outcome?.value.kind ?? 0, 'REFUSAL_KIND_'), revision };
    });
  }

  /** By the lease's id, or by the key that it was asked for with. */
  release(replica: Replica, runId: string, by: { readonly leaseId: string } | { readonly key: string }) {
    const asked = { runId, leaseId: '', key: '', ...by };
    return this.call('release', replica, asked, async (options) => {
      const lease =
        'key' in by
          ? ({ $case: 'acquireKey', value: by.key } as const)
          : ({ $case: 'leaseId', value: by.leaseId } as const);
      return releaseTold(await this.asks(replica).releaseLease({ runId, lease }, options));
    });
  }

  /** What came of it the log tells. */
  async amend(replica: Replica, { runId, leaseId }: Pick<SeenLease, 'runId' | 'leaseId'>, change: Amendment) {
    const { add = [], remove = [] } = change;
    const request = { runId, leaseId, idempotencyKey: randomUUID(), add: add.map(wireEntry), remove: [...remove] };
    const { timeoutMs } = this;
    await this.asks(replica)
      .amendWriteSet(request, { timeoutMs })
      .catch(() => undefined);
  }

  revoke(replica: Replica, leaseId: string) {
    return this.call('revoke', replica, { leaseId }, async (options) => {
      const answer = await replica.client('operator').lease.revokeLease({ leaseId, reason: 'the harness' }, options);
      return {
        endReason: word(EndReason, answer.endReason, 'END_REASON_'),
        effectiveAt: timestampMicros(answer.effectiveAt) ?? 0,
        revision: Number(answer.logRevision),
      };
    });
  }

  stopRun(replica: Replica, runId: string) {
    return this.call('stop_run', replica, { runId }, async (options) => {
      const answer = await replica.client('operator').run.stopRun({ runId, reason: 'the harness' }, options);
      return {
        state: word(RunState, answer.run?.state ?? 0, 'RUN_STATE_'),
        effectiveAt: timestampMicros(answer.effectiveAt) ?? 0,
        revision: Number(answer.logRevision),
      };
    });
  }

  /** As a target: under a lease id, or by a credential. `admissions` gets the ids of tracked writes that were let in. */
  check(
    replica: Replica,
    by: { readonly leaseId: string; readonly runId: string } | { readonly credential: Presentable },
    writes: readonly CheckedWrite[],
    admissions: string[] = [],
  ) {
    const asked =
      'credential' in by
        ? { leaseId: '', jti: by.credential.seen.jti, runId: '', writes }
        : { leaseId: by.leaseId, jti: '', runId: by.runId, writes };
    return this.call('check', replica, asked, async (options) => {
      const answer = await (this.streamsOf?.(replica) ?? replica.client('target').fence).checkFence(
        {
          ...('credential' in by
            ? { credential: by.credential.token }
            : { leaseId: by.leaseId, presenterRunId: by.runId }),
          writes: writes.map(({ resource, action, token, observedVersion }) => ({
            resource,
            action,
            fencingToken: 'credential' in by ? 0n : BigInt(token),
            ...(observedVersion === null ? {} : { observedVersion }),
          })),
          requestId: randomUUID(),
        },
        options,
      );
      admissions.push(...answer.results.map(({ admissionId }) => admissionId).filter((id) => id !== ''));
      return {
        allowed: answer.allowed,
        results: answer.results.map(({ allowed, reason, observedOnly }) => ({
          allowed,
          reason: word(FenceReason, reason, 'FENCE_REASON_'),
          observedOnly,
        })),
        revision: Number(answer.logRevision),
      };
    });
  }

  async issue(
    replica: Replica,
    { runId, leaseId }: Pick<SeenLease, 'runId' | 'leaseId'>,
    audience: string,
  ): Promise<Presentable | null> {
    let issued: Presentable | null = null;
    await this.call('issue', replica, { runId, leaseId, audience }, async (options) => {
      const answer = await replica.client('runner').credential.issueCredential({ runId, leaseId, audience }, options);
      if (answer.outcome?.$case === 'credential') issued = presentable(answer.outcome.value);
      return { credential: issued?.seen ?? null, revision: Number(answer.logRevision) };
    });
    return issued;
  }

  async putMap(replica: Replica, document: string, expectedVersion: number): Promise<number | null> {
    const told = await this.call('put_map', replica, { expectedVersion }, async (options) => {
      const answer = await replica
        .client('admin')
        .conflictMap.putConflictMap(
          { document, expectedVersion: BigInt(expectedVersion), reason: 'the harness' },
          options,
        );
      return { version: Number(answer.version), revision: Number(answer.logRevision) };
    });
    return told?.version ?? null;
  }

  checkpoint(replica: Replica) {
    return this.call('checkpoint', replica, {}, async (options) => {
      const { checkpoint } = await replica.client('auditor').audit.getCheckpoint({}, options);
      return {
        revision: Number(checkpoint?.revision ?? 0n),
        hash: Buffer.from(checkpoint?.hash ?? []).toString('hex'),
      };
    });
  }

  private asks(replica: Replica): Pick<Streams, 'acquireWriteSet' | 'renewLeases' | 'releaseLease' | 'amendWriteSet'> {
    return this.streamsOf?.(replica) ?? replica.client('runner').lease;
  }

  private call<K extends keyof CallShapes>(
    kind: K,
    replica: Replica,
    asked: CallShapes[K]['asked'],
    ask: (options: { readonly timeoutMs: number; readonly once: true }) => Promise<CallShapes[K]['told']>,
  ) {
    const { timeoutMs } = this;
    return this.recorder.call(kind, this.name, replica.name, asked, () => ask({ timeoutMs, once: true }));
  }
}
