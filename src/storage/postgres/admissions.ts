import type { Admission, KnownOutcome } from '../../domain/admission.js';
import type { CheckName } from '../../domain/decide/decision.js';
import type { Micros } from '../../domain/time.js';
import type { Loaded } from '../store.js';
import type { Session } from './connections.js';
import { statement } from './statement.js';

/** Tracked writes as rows of writ.admission, and the reads of them. */

export interface AdmissionRow {
  readonly admission_id: string;
  readonly lease_id: string;
  readonly run_id: string;
  readonly resource: string;
  readonly action: string;
  readonly token: number;
  readonly request_id: string;
  readonly observed_version: string | null;
  readonly target: string;
  readonly admitted_at_us: Micros;
  readonly in_doubt_since_us: Micros | null;
  readonly unsure: boolean;
  /** Null with the four that follow: open. */
  readonly outcome: KnownOutcome['result'] | null;
  readonly known_at_us: Micros | null;
  readonly known_by: string | null;
  readonly settled: boolean | null;
  readonly new_version: string | null;
}

const COLUMNS = `a.admission_id, a.lease_id, a.run_id, a.resource, a.action, a.token, a.request_id, a.observed_version,
  a.target, a.admitted_at_us, a.in_doubt_since_us, a.unsure, a.outcome, a.known_at_us, a.known_by, a.settled,
  a.new_version`;

export function admissionColumns(admission: Admission): AdmissionRow {
  const { outcome } = admission;
  return {
    admission_id: admission.admissionId,
    lease_id: admission.leaseId,
    run_id: admission.runId,
    resource: admission.resource,
    action: admission.action,
    token: admission.token,
    request_id: admission.requestId,
    observed_version: admission.observedVersion,
    target: admission.target,
    admitted_at_us: admission.admittedAt,
    in_doubt_since_us: admission.inDoubtSince,
    unsure: admission.unsure,
    outcome: outcome?.result ?? null,
    known_at_us: outcome?.at ?? null,
    known_by: outcome?.by ?? null,
    settled: outcome?.settled ?? null,
    new_version: outcome?.newVersion ?? null,
  };
}

function admissionFromRow(row: AdmissionRow): Admission {
  return {
    admissionId: row.admission_id,
    leaseId: row.lease_id,
    runId: row.run_id,
    resource: row.resource,
    action: row.action,
    token: row.token,
    requestId: row.request_id,
    observedVersion: row.observed_version,
    target: row.target,
    admittedAt: row.admitted_at_us,
    inDoubtSince: row.in_doubt_since_us,
    unsure: row.unsure,
    outcome: outcomeFromRow(row),
  };
}

function outcomeFromRow(row: AdmissionRow): KnownOutcome | null {
  const { outcome: result, known_at_us: at, known_by: by, settled, new_version: newVersion } = row;
  if (result === null || at === null || by === null || settled === null) return null;
  return { result, at, by, settled, newVersion };
}

type Row<T> = T & { readonly [column: string]: unknown };

/** Few: how many there can be is bounded when they are let in. */
const OPEN = statement(
  'open_admissions',
  `
SELECT ${COLUMNS} FROM writ.admission AS a
WHERE a.namespace = $namespace AND a.outcome IS NULL ORDER BY a.admitted_at_us, a.admission_id`,
);

/** Those whose outcome is not known, in the order in which they were let in. */
export async function readOpenAdmissions(session: Session, namespace: string): Promise<Admission[]> {
  return (await session.query<Row<AdmissionRow>>(OPEN, { namespace })).map(admissionFromRow);
}

/** The newest of a check that were let in and reported again and again by one request id. */
const MAX_OF_CHECK = 256;

const LOAD = statement(
  'load_admissions',
  `
SELECT head.revision AS head_revision, found.* FROM (SELECT (
  SELECT e.revision FROM writ.event AS e WHERE e.namespace = $namespace ORDER BY e.revision DESC LIMIT 1
) AS revision) AS head
LEFT JOIN (
  SELECT ${COLUMNS} FROM writ.admission AS a
  WHERE a.namespace = $namespace AND a.admission_id = ANY ($ids::text[])
  UNION
  SELECT ${COLUMNS} FROM unnest($lease_ids::text[], $request_ids::text[]) AS wanted (lease_id, request_id)
  CROSS JOIN LATERAL (SELECT * FROM writ.admission AS b
    WHERE b.namespace = $namespace AND b.lease_id = wanted.lease_id AND b.lease_id <> ''
      AND b.request_id = wanted.request_id
    ORDER BY b.admitted_at_us DESC LIMIT ${MAX_OF_CHECK}) AS a
) AS found ON true`,
);

export async function loadAdmissions(
  session: Session,
  namespace: string,
  ids: readonly string[],
  checks: readonly CheckName[],
): Promise<Loaded<Admission>> {
  const values = {
    namespace,
    ids: [...ids],
    lease_ids: checks.map(({ leaseId }) => leaseId),
    request_ids: checks.map(({ requestId }) => requestId),
  };
  const rows = await session.query<Row<AdmissionRow & { readonly head_revision: number | null }>>(LOAD, values);
  const records = rows.filter((row) => (row.admission_id as string | null) !== null).map(admissionFromRow);
  return { revision: rows[0]?.head_revision ?? 0, records };
}
