import type { DomainEvent } from '../domain/event.js';
import { type Micros, SECOND } from '../domain/time.js';
import { addTo, LeaseHistory } from './lease-history.js';

/**
 * Compares the coordinator's log with a target's own record of writes (A2, W6). Allowed checks of actions that are not
 * tracked are counted and not logged, so a write is judged by what the log can prove: whether its run held a lease on the
 * resource, with the action, when the target recorded it, give or take the difference of the two clocks.
 */

/** A write as the target recorded it. */
export interface TargetRecord {
  /** 1-based line of the file. */
  readonly line: number;
  /** On the target's clock. */
  readonly at: Micros;
  readonly identity: string;
  /** Empty: no run. */
  readonly runId: string;
  readonly requestId: string;
  readonly resource: string;
  readonly action: string;
  /** `written`, or the code of the refusal. */
  readonly result: string;
  readonly newVersion: string | null;
}

export type FindingKind =
  /** Written; no lease of its run ever covered it, and nobody overrode. */
  | 'no_lease'
  /** Written; the lease that covered it was not live then. */
  | 'not_live'
  /** Written; what the coordinator was told is something else. */
  | 'result_differs'
  | 'version_differs'
  /** The coordinator was told that it was written, and the target has no record of it. */
  | 'reported_without_record'
  /** A check let a tracked write in, and the target neither reported nor recorded it. */
  | 'admitted_without_record'
  /** Written without a lease, as a person overrode at the target; nothing is wrong. */
  | 'override'
  /** Written without a lease to a kind that only observes; nothing is wrong. */
  | 'observed';

/** Said, but nothing that is wrong. */
export const NOTICES: ReadonlySet<FindingKind> = new Set<FindingKind>(['override', 'observed']);

export interface Finding {
  readonly kind: FindingKind;
  readonly resource: string;
  readonly action: string;
  readonly runId: string;
  readonly requestId: string;
  readonly identity: string;
  /** Of the record; null: there is none. */
  readonly recordedAt: Micros | null;
  readonly line: number | null;
  /** Of the event that says otherwise; null: there is none. */
  readonly loggedAt: Micros | null;
  readonly revision: number | null;
  readonly meaning: string;
}

export interface Reconciled {
  readonly records: number;
  /** Of them, those that say `written`. */
  readonly written: number;
  /** Written ones that the log cannot judge: from before its beginning, or from about its end or later. */
  readonly unjudged: number;
  readonly findings: readonly Finding[];
}

/** What the log says of one request's write of one resource. */
interface Logged {
  readonly runId: string;
  readonly at: Micros;
  readonly revision: number;
}

interface Report extends Logged {
  readonly result: string;
  readonly newVersion: string | null;
}

const keyOf = (requestId: string, resource: string, action: string): string =>
  JSON.stringify([requestId, resource, action]);

/** Denials are counted together, and only the first are named. */
const UNNAMED = '';

/** They are in the log at most so long after the checks: what gathers them waits, and tries again. */
const GATHERED_FOR: Micros = 2 * SECOND;

/** That a person let a request in at the target. */
interface Override extends Logged {
  readonly overrideId: string;
  readonly who: string;
  readonly why: string;
  /** On the target's clock, as the records are. */
  readonly usedAt: Micros;
}

interface ObservedDenial extends Logged {
  readonly reason: string;
}

/** The log, as far as it concerns the records. Events are noted in order; then the records are judged. */
export class Reconciliation {
  private readonly leases: LeaseHistory;
  private readonly admissions = new Map<string, Logged>();
  private readonly reports = new Map<string, Report[]>();
  private readonly overrides = new Map<string, Override[]>();
  private readonly observed = new Map<string, ObservedDenial[]>();
  private firstRevision = 0;
  private begins: Micros = Number.POSITIVE_INFINITY;
  private ends: Micros = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly records: readonly TargetRecord[],
    /** The principal as which the target asks and reports. */
    private readonly target: string,
    /** By how much the clocks of target and coordinator may differ, with the time from a check to its record. */
    private readonly tolerance: Micros,
  ) {
    this.leases = new LeaseHistory(records.map(({ resource }) => resource));
  }

  note(event: DomainEvent, revision: number): void {
    const { time } = event;
    if (this.firstRevision === 0) [this.firstRevision, this.begins] = [revision, time];
    this.ends = time;
    this.leases.note(event, revision);
    this.noteWrites(event, revision);
  }

  /** Of others' words nothing counts: one target could speak for what was written at another without authority. */
  private noteWrites({ time: at, runId, actor, body }: DomainEvent, revision: number): void {
    const logged = { at, runId, revision };
    if (body.kind === 'writes_admitted' && body.target === this.target)
      for (const { resource, action } of body.writes)
        this.admissions.set(keyOf(body.requestId, resource, action), logged);
    if (body.kind === 'writes_reported' && body.target === this.target)
      for (const { resource, action, result, newVersion } of body.writes) {
        const key = keyOf(body.requestId, resource, action);
        addTo(this.reports, key, { ...logged, result, newVersion });
      }
    if (body.kind === 'override_reported' && body.use !== null && actor === this.target) {
      const { overrideId, who, why } = body;
      const { requestId, usedAt, writes } = body.use;
      for (const { resource, action } of writes)
        addTo(this.overrides, keyOf(requestId, resource, action), { ...logged, overrideId, who, why, usedAt });
    }
    if (body.kind === 'checks_denied')
      for (const { observedOnly, requestIds, count, resource, action, reason, target } of body.denials)
        if (observedOnly && target === this.target)
          for (const id of count > requestIds.length ? [...requestIds, UNNAMED] : requestIds)
            addTo(this.observed, keyOf(id, resource, action), { ...logged, reason });
  }

  judge(): Reconciled {
    const written = this.records.filter(({ result }) => result === 'written');
    const findings: Finding[] = [];
    let unjudged = 0;
    for (const record of written) {
      const found = this.authorityOf(record);
      if (found === 'unknown') unjudged += 1;
      else if (found !== null) findings.push(found);
    }
    findings.push(...this.compareReports(), ...this.withoutRecord());
    return { records: this.records.length, written: written.length, unjudged, findings };
  }

  /** Null: the log says why it was let in. */
  private authorityOf(record: TargetRecord): Finding | 'unknown' | null {
    const { runId, resource, action, at } = record;
    const covering = this.leases.covering(runId, resource, action);
    const { tolerance } = this;
    if (covering.some(({ span }) => span.from - tolerance <= at && at <= span.until + tolerance)) return null;
    const override = this.overrideOf(record);
    if (override !== undefined)
      return of('override', record, override, `${override.who} overrode at the target: ${override.why}`);
    const observed = this.observedOf(record);
    if (observed !== undefined)
      return of(
        'observed',
        record,
        observed,
        `The kind only observes: the check would have been denied as ${observed.reason}.`,
      );
    // By a clock that differs, a record from just before the end can be of a write under a lease granted after it (F23).
    if (at < this.begins - tolerance || at > this.ends - tolerance) return 'unknown';
    const nearest = covering.at(-1);
    if (nearest !== undefined) {
      const { held, span } = nearest;
      const when = at > span.until ? `ended (${held.endReason}) before it` : 'began after it';
      return of(
        'not_live',
        record,
        { at: at > span.until ? span.until : span.from, runId, revision: held.revision },
        `The run's lease that covers it ${when}: the target wrote without a check, or long after it.`,
      );
    }
    // A lease from before the beginning of the log may have covered it.
    if (this.firstRevision > 1) return 'unknown';
    const who = runId === '' ? 'It names no run' : 'No lease of its run ever covered it';
    return of('no_lease', record, null, `${who}, and no override is reported: the target wrote without authority.`);
  }

  /**
   * One lets in who presents no lease, so its write is of no run, or of what stands for one at the guard; and ids of
   * requests are the callers', who may use one again.
   */
  private overrideOf({ requestId, resource, action, runId, at }: TargetRecord): Override | undefined {
    const uses = this.overrides.get(keyOf(requestId, resource, action)) ?? [];
    return uses.find(
      ({ overrideId, usedAt }) =>
        (runId === '' || runId === `override:${overrideId}`) && Math.abs(at - usedAt) <= this.tolerance,
    );
  }

  /** By its id; or as one of those that were only counted, of the time at which they were: later the kind may be enforced. */
  private observedOf({ requestId, resource, action, at }: TargetRecord): ObservedDenial | undefined {
    const counted = this.observed.get(keyOf(UNNAMED, resource, action)) ?? [];
    return (
      this.observed.get(keyOf(requestId, resource, action))?.at(-1) ??
      counted.find((denial) => denial.at - GATHERED_FOR - this.tolerance <= at && at <= denial.at + this.tolerance)
    );
  }

  private compareReports(): Finding[] {
    const findings: Finding[] = [];
    for (const [key, records] of this.recordsByKey()) {
      const reports = this.reports.get(key)?.filter(({ result }) => result !== 'unknown');
      const report = reports?.at(-1);
      const written = records.filter(({ result }) => result === 'written');
      const record = written.at(-1) ?? records.at(-1);
      if (reports === undefined || report === undefined || record === undefined) continue;
      const told = reports.some(({ result }) => result === 'succeeded');
      if (told !== written.length > 0) {
        const meaning = told
          ? `The target reported succeeded, and no record of it says "written", only "${record.result}".`
          : 'The target recorded "written" and reported failed.';
        findings.push(of('result_differs', record, report, meaning));
        continue;
      }
      const versions = new Set(written.map(({ newVersion }) => newVersion));
      const differs = report.newVersion !== null && !versions.has(report.newVersion) && !versions.has(null);
      if (told && differs) {
        const meaning = `The target recorded the version ${record.newVersion} and reported ${report.newVersion}.`;
        findings.push(of('version_differs', record, report, meaning));
      }
    }
    return findings;
  }

  /** Only from the time that the records are of: older ones may have been deleted, newer ones are not listed yet. */
  private withoutRecord(): Finding[] {
    const times = this.records.map(({ at }) => at);
    const first = times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY) + this.tolerance;
    const last = times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY) - this.tolerance;
    const within = ({ at }: Logged): boolean => at >= first && at <= last;
    const recorded = this.recordsByKey();
    const findings: Finding[] = [];
    for (const [key, reports] of this.reports) {
      const report = reports.find(({ result }) => result === 'succeeded');
      if (report === undefined || recorded.has(key) || !within(report)) continue;
      findings.push(
        unrecorded(
          'reported_without_record',
          key,
          report,
          'The target reported that it was written, and has no record of it.',
        ),
      );
    }
    for (const [key, admission] of this.admissions) {
      if (recorded.has(key) || this.reports.has(key) || !within(admission)) continue;
      findings.push(
        unrecorded(
          'admitted_without_record',
          key,
          admission,
          'A check let it in; the target neither reported nor recorded what became of it.',
        ),
      );
    }
    return findings;
  }

  private recordsByKey(): Map<string, TargetRecord[]> {
    const byKey = new Map<string, TargetRecord[]>();
    for (const record of this.records) addTo(byKey, keyOf(record.requestId, record.resource, record.action), record);
    return byKey;
  }
}

function of(kind: FindingKind, record: TargetRecord, logged: Logged | null, meaning: string): Finding {
  const { resource, action, runId, requestId, identity, at, line } = record;
  return {
    kind,
    ...{ resource, action, runId, requestId, identity, line },
    recordedAt: at,
    loggedAt: logged?.at ?? null,
    revision: logged?.revision ?? null,
    meaning,
  };
}

function unrecorded(kind: FindingKind, key: string, logged: Logged, meaning: string): Finding {
  const [requestId = '', resource = '', action = ''] = JSON.parse(key) as string[];
  return {
    kind,
    ...{ resource, action, requestId, meaning },
    runId: logged.runId,
    identity: '',
    recordedAt: null,
    line: null,
    loggedAt: logged.at,
    revision: logged.revision,
  };
}
