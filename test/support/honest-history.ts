import type { RequestedEntry } from '../../src/domain/entry.js';
import type { Lease } from '../../src/domain/lease.js';
import { type Micros, SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { GENESIS_HASH } from '../../src/engine/hash-chain.js';
import type { EventRecord } from '../../src/storage/store.js';
import type {
  Call,
  CallKind,
  CallOf,
  CallShapes,
  History,
  Moment,
  SeenCredential,
  SeenLease,
} from '../harness/history.js';
import { Namespace, START } from './domain.js';

export function seen(lease: Lease): SeenLease {
  return {
    leaseId: lease.leaseId,
    runId: lease.runId,
    state: lease.state,
    generation: lease.generation,
    entries: lease.entries.map((entry) => ({ ...entry, observed: entry.observedRefusal !== null })),
    grantedAt: lease.grantedAt,
    expiresAt: lease.expiresAt,
    maxExpiresAt: lease.maxExpiresAt,
    endReason: lease.endReason ?? '',
  };
}

/** How long a call is on its way to and fro; null: its answer is lost. */
export interface Way {
  readonly there?: Micros;
  readonly back?: Micros | null;
}

/**
 * A history as an honest coordinator makes it: every command is decided by the domain at one moment, between when it was
 * sent and when it was answered. Tests plant violations into it.
 */
export class HonestHistory {
  readonly ns = new Namespace();
  readonly calls: Call[] = [];
  readonly log: EventRecord[] = [];
  private decided = 0;

  constructor() {
    this.logged();
  }

  /** The harness's clock: what the database's shows, less where the tests begin. */
  get moment(): Moment {
    return this.ns.now - START;
  }

  get history(): History {
    const reading = { sent: 0, answered: 10, database: START + 5 };
    return { calls: this.calls, readings: [reading], outages: [], losses: [], log: this.log };
  }

  run(runId: string, authorityEndsAt = START + 86_400 * SECOND, parentRunId = ''): this {
    this.call('create_run', { key: runId, authorityEndsAt }, {}, (revision) => {
      // A child run is its parent's principal's.
      const principal = `principal-of-${parentRunId === '' ? runId : parentRunId}`;
      this.ns.run(runId, { authorityEndsAt, parentRunId, principal });
      return { runId, revision: revision() };
    });
    return this;
  }

  acquire(
    runId: string,
    entries: readonly RequestedEntry[],
    options: { key?: string; wait?: Micros; of?: Pick<SeenLease, 'leaseId'> | undefined } & Way = {},
  ): CallOf<'acquire'> {
    const key = options.key ?? this.ns.fresh('key');
    const { wait = 0, of } = options;
    const asked = { runId, key, entries, waits: wait > 0, delegatedFrom: of?.leaseId ?? '' };
    return this.call('acquire', asked, options, (revision) => {
      const whole = of === undefined ? {} : { of: this.ns.lease(of.leaseId) };
      const answer = this.ns.acquire(runId, entries, { key, wait, ...whole });
      const common = () => ({ revision: revision(), credentials: [] });
      if (answer.kind === 'lease') return { outcome: 'lease', lease: seen(this.ns.granted(answer)), ...common() };
      if (answer.kind === 'waiting') return { outcome: 'waiting', ...common() };
      const cycle = answer.refusal.kind === 'deadlock' ? ['a', 'b'] : [];
      return { outcome: 'refusal', refusal: answer.refusal.kind, cycle, ...common() };
    });
  }

  /** A part of a lease, for a child run, that is granted at once. */
  delegate(of: SeenLease, runId: string, ...entries: readonly RequestedEntry[]): SeenLease {
    const { told } = this.acquire(runId, entries, { of });
    if (told?.outcome !== 'lease') throw new Error(`no lease, but ${told?.outcome}`);
    return told.lease;
  }

  /** What its session tells of a lease as it is. */
  push(leaseId: string): void {
    this.call('pushed', { leaseId }, {}, (revision) => {
      const lease = this.ns.lease(leaseId);
      return lease.state === 'ended'
        ? { event: 'lost', endReason: lease.endReason ?? '' }
        : { event: 'granted', lease: seen(lease), revision: revision() };
    });
  }

  /** A lease that is granted at once. */
  hold(runId: string, ...entries: readonly RequestedEntry[]): SeenLease {
    const { told } = this.acquire(runId, entries);
    if (told?.outcome !== 'lease') throw new Error(`no lease, but ${told?.outcome}`);
    return told.lease;
  }

  renew(leaseId: string, way: Way = {}): CallOf<'renew'> {
    const { runId } = this.ns.lease(leaseId);
    return this.call('renew', { runId, leaseId }, way, (revision) => {
      const decision = this.ns.renew(leaseId);
      if (decision.refusal !== null)
        return { outcome: 'refusal', refusal: decision.refusal.kind, revision: revision() };
      return { outcome: 'lease', lease: seen(this.ns.lease(leaseId)), revision: revision() };
    });
  }

  release(leaseId: string, way: Way = {}): CallOf<'release'> {
    const { runId } = this.ns.lease(leaseId);
    return this.call('release', { runId, leaseId, key: '' }, way, (revision) => {
      const { outcome } = this.ns.release(leaseId);
      const { endReason } = this.ns.lease(leaseId);
      return { outcome, endReason: endReason ?? '', effectiveAt: this.ns.now, revision: revision() };
    });
  }

  revoke(leaseId: string, way: Way = {}): CallOf<'revoke'> {
    return this.call('revoke', { leaseId }, way, (revision) => {
      this.ns.revoke(this.ns.lease(leaseId));
      return { endReason: 'revoked', effectiveAt: this.ns.now, revision: revision() };
    });
  }

  stop(runId: string, way: Way = {}): CallOf<'stop_run'> {
    return this.call('stop_run', { runId }, way, (revision) => {
      this.ns.stop(runId);
      const state = this.ns.state.runs.get(runId)?.state ?? '';
      return { state, effectiveAt: this.ns.now, revision: revision() };
    });
  }

  /** One write of a lease, as its run presents it; others than its own on demand. */
  check(
    lease: Pick<SeenLease, 'leaseId' | 'runId' | 'entries'>,
    more: Partial<CallShapes['check']['asked']['writes'][number]> & { jti?: string } & Way = {},
  ): CallOf<'check'> {
    const { there, back, jti = '', ...changes } = more;
    const [entry] = lease.entries;
    const write = {
      resource: entry?.resource ?? '',
      action: entry?.actions[0] ?? '',
      token: entry?.token ?? 0,
      observedVersion: 'v1',
      ...changes,
    };
    const asked = { leaseId: jti === '' ? lease.leaseId : '', jti, runId: lease.runId, writes: [write] };
    return this.call('check', asked, { there, back } as Way, (revision) => {
      const { allowed, results } = this.ns.checkAs(lease.runId, lease.leaseId, write);
      return {
        allowed,
        results,
        revision: revision(),
      };
    });
  }

  issue(lease: SeenLease, audience = 'target'): SeenCredential {
    const expires = Math.floor(((this.ns.lease(lease.leaseId).expiresAt ?? 0) - 6 * SECOND) / SECOND);
    const credential: SeenCredential = {
      jti: this.ns.fresh('jti'),
      audience,
      runId: lease.runId,
      leaseId: lease.leaseId,
      expires,
      grants: lease.entries.map(({ resource, actions, token }) => ({ resources: [resource], actions, token })),
    };
    this.call('issue', { runId: lease.runId, leaseId: lease.leaseId, audience }, {}, (revision) => ({
      credential,
      revision: revision(),
    }));
    return credential;
  }

  checkpoint(): void {
    this.call('checkpoint', {}, {}, (revision) => ({ revision: revision(), hash: this.log.at(-1)?.hash ?? '' }));
  }

  /** A call that says what it says, whether or not anything of it happened. */
  claim<K extends CallKind>(kind: K, asked: CallShapes[K]['asked'], told: CallShapes[K]['told']): CallOf<K> {
    return this.call(kind, asked, {}, () => told);
  }

  /** Decided at a moment between two others; what was written is in the log then. */
  private call<K extends CallKind>(
    kind: K,
    asked: CallShapes[K]['asked'],
    { there = 100, back = 100 }: Way,
    decide: (revision: () => number) => CallShapes[K]['told'],
  ): CallOf<K> {
    this.ns.advance(1_000);
    const sent = this.moment - there;
    const told = decide(() => {
      this.logged();
      return this.log.length;
    });
    this.logged();
    const call = {
      id: this.calls.length + 1,
      kind,
      by: 'test',
      of: 'a',
      sent,
      answered: back === null ? null : this.moment + back,
      asked,
      told: back === null ? null : told,
      fault: null,
    };
    this.calls.push(call as unknown as Call);
    return { ...call, told } as CallOf<K>;
  }

  private logged(): void {
    const last = this.log.at(-1);
    const head = last ?? { revision: 0, hash: GENESIS_HASH, time: START };
    const events = this.ns.events.slice(this.decided);
    this.decided = this.ns.events.length;
    this.log.push(...toRecords('test', `batch-${this.decided}`, head, events));
  }
}
