import type { ClientBase } from 'pg';
import { type ChangeClass, type ChangeRule, changeRule } from '../../route-table/index.js';
import { etagOf, type Precondition, type PreconditionHeaders, readPrecondition } from './conditional-precondition.js';
import { type HeaderSource, headerOf } from './gate-presented.js';
import { ProblemError } from './problem-error.js';

/**
 * Conditional writes (W1): check and change are one statement, where the state lives.
 *
 * Reading a version, comparing it and then writing is the mistake that this file makes hard: between the read and the
 * write somebody else writes. So a condition is not handed out as something to compare; it goes into the statement that
 * changes, in the place of `:observed`, and a statement without that place is refused. Zero rows is the conflict.
 */

/** What is written, for the answer in case of a conflict. */
export interface ConditionalTarget {
  /** The path, for the problem that a refused caller gets. */
  readonly resource: string;
  /** The action, for the same. */
  readonly action?: string;
  /** The class of the write path (W4): it says what happens on a conflict, and who resolves it. */
  readonly changeClass: ChangeClass;
  /** Default: of the class. */
  readonly resolver?: string;
  /** An explicit lease covers the write, as the gate says of its `writes`. Default: none does (W4). */
  readonly explicit?: boolean;
  /** Correlates the answer with the target's own log. */
  readonly requestId?: string;
}

/** SQL with `$1`, `$2`, … and its values. */
export interface Statement {
  /** SQL with `$1`, `$2` and so on; never with values in it. */
  readonly text: string;
  readonly values: readonly unknown[];
}

/** What a write does under its condition. Leave out what the route does not do. */
export interface ConditionalChange {
  /**
   * For `If-Match`: one UPDATE or DELETE of one row, with `= :observed` in its condition, that returns `version` (a
   * column of another name: `RETURNING rev AS version`). An UPDATE sets a version that was never there before.
   */
  readonly update?: Statement;
  /** For `If-None-Match: *`: an INSERT with ON CONFLICT DO NOTHING that returns `version`. */
  readonly create?: Statement;
  /** Selects the `version` that is there, for the answer in case of a conflict. */
  readonly current: Statement;
}

/** A change that was made. */
export interface Changed<Row> {
  /** The new version; of a DELETE the one that is gone. */
  readonly version: string;
  /** Its strong ETag, for the answer. */
  readonly etag: string;
  /** All that the statement returned. */
  readonly row: Row;
}

/**
 * The write was made from another version than is there (412), and changed nothing. The body says who may do what now;
 * the same body must not be sent again (W1a).
 */
export class VersionConflictError extends ProblemError {
  override readonly name = 'VersionConflictError';

  constructor(
    readonly target: ConditionalTarget,
    precondition: Precondition,
    readonly currentVersion: string | null,
  ) {
    const { resource, action, changeClass, resolver, explicit, requestId } = target;
    const rule = changeRule(changeClass, explicit);
    super({
      status: 412,
      code: 'version_conflict',
      detail: `${resource} ${currentVersion === null ? 'is not there' : `is at version ${currentVersion}`}, and the change was made ${madeFrom(precondition)}. Nothing was changed.`,
      retryable: rule.retryable,
      resource,
      action,
      expected_version: observedOf(precondition),
      current_version: currentVersion ?? undefined,
      conflict_category: changeClass,
      resolver: resolver ?? rule.resolver,
      next: nextAfter(rule, precondition, currentVersion),
      request_id: requestId,
    });
  }
}

/** What is not there has no other candidate to show, and no version to write on. */
function nextAfter(rule: ChangeRule, precondition: Precondition, currentVersion: string | null): string {
  if (currentVersion !== null || precondition.kind === 'absent') return rule.next;
  return rule.retryable
    ? 'Read it again: it is not there, or not any more. Decide anew whether it is still wanted; if so, create it.'
    : 'Stop. It is not there, or not any more: the resolver decides whether it should be.';
}

const READ_FIRST = 'Read the resource, decide on what is there, and send its ETag in If-Match.';

function madeFrom(precondition: Precondition): string {
  if (precondition.kind === 'absent') return 'for one that is not there yet';
  const { versions } = precondition;
  return versions.length === 0 ? 'from weak ETags, which match no version' : `from version ${versions.join(' or ')}`;
}

/** The one version that was observed; undefined: none, or several. */
function observedOf(precondition: Precondition): string | undefined {
  return precondition.kind === 'versions' && precondition.versions.length === 1 ? precondition.versions[0] : undefined;
}

/** How versions are compared. */
export interface ConditionOptions {
  /**
   * What versions are in the database: `integer` (default; bigint included) or `text`. A tag that is no integer names no
   * version there ever was, and so matches none.
   */
  readonly versions?: 'integer' | 'text';
}

/**
 * The condition of a write, from its headers; throws a ProblemError (428) without one.
 *
 * @example
 * const condition = conditionOf(c.req.raw.headers, { resource: `policy/${id}`, changeClass: 'shared_document' });
 * const changed = await inTransaction(pool, (client) =>
 *   condition.change(client, {
 *     update: {
 *       text: 'UPDATE policy SET body = $1, version = version + 1 WHERE id = $2 AND version = :observed RETURNING version',
 *       values: [body, id],
 *     },
 *     current: { text: 'SELECT version FROM policy WHERE id = $1', values: [id] },
 *   }),
 * );
 * return c.json({ version: changed.version }, 200, { etag: changed.etag });
 */
export function conditionOf(
  headers: HeaderSource,
  target: ConditionalTarget,
  options: ConditionOptions = {},
): WriteCondition {
  const read = readPrecondition(preconditionHeaders(headers));
  if (read.ok) return new WriteCondition(read.precondition, target, options);
  const { resource, action, requestId } = target;
  throw new ProblemError({
    ...read.flaw,
    resource,
    action,
    next: READ_FIRST,
    request_id: requestId,
  });
}

/** The two headers, as they came. */
export function preconditionHeaders(headers: HeaderSource): PreconditionHeaders {
  return { ifMatch: headerOf(headers, 'if-match'), ifNoneMatch: headerOf(headers, 'if-none-match') };
}

/** On what a write depends; spent by the statement that makes the change. */
export class WriteCondition {
  constructor(
    private readonly precondition: Precondition,
    private readonly target: ConditionalTarget,
    private readonly options: ConditionOptions,
  ) {}

  /** The version that was read, for the fence check and the write record; undefined: none, or several. */
  get observedVersion(): string | undefined {
    return observedOf(this.precondition);
  }

  /** In words, for the write record. */
  get text(): string {
    return this.precondition.kind === 'absent'
      ? 'if-none-match *'
      : `if-match ${this.precondition.versions.map((version) => `"${version}"`).join(', ')}`;
  }

  /**
   * Makes the change in the caller's transaction, if the condition holds in the very statement that makes it. Throws
   * VersionConflictError where it does not: let it roll the transaction back.
   */
  async change<Row extends { version: unknown } = { version: string }>(
    client: Pick<ClientBase, 'query'>,
    { update, create, current }: ConditionalChange,
  ): Promise<Changed<Row>> {
    const statement = this.precondition.kind === 'absent' ? this.creating(create) : this.updating(update);
    const { rows } = await client.query<Row>(statement.text, [...statement.values]);
    if (rows.length > 1) throw new TypeError(`a conditional change is of one row; this one changed ${rows.length}`);
    const [row] = rows;
    if (row !== undefined) return this.changed(row, statement);
    const { rows: there } = await client.query<{ version: unknown }>(current.text, [...current.values]);
    throw this.conflict(there[0] === undefined ? null : versionIn(there[0], 'the statement that reads', 'SELECT'));
  }

  /**
   * The refusal, for a store that has no statements: where the step that compares and changes found another version than
   * `observedVersion`. `currentVersion` is the one that is there; null: it is not there.
   */
  conflict(currentVersion: string | null): VersionConflictError {
    return new VersionConflictError(this.target, this.precondition, currentVersion);
  }

  private creating(create: Statement | undefined): Statement {
    if (create === undefined)
      throw this.required('Nothing is created here: say which version was read, with If-Match.', READ_FIRST);
    // Without it a second creation is an error of the database, which says nothing to the caller.
    if (!/\bon\s+conflict\b/i.test(create.text)) throw new TypeError('the INSERT must say ON CONFLICT DO NOTHING');
    return create;
  }

  private updating(update: Statement | undefined): Statement {
    if (update === undefined)
      throw this.required(
        'This only creates: send If-None-Match: *.',
        'Read the resource. If it is not there, and still wanted, send the request with If-None-Match: *.',
      );
    const place = /=\s*:observed\b/g;
    if (update.text.search(place) < 0)
      throw new TypeError('the statement that changes must compare the version itself: … AND version = :observed');
    // A type of its own: an integer column compared with a number that it cannot hold is an error of the database.
    const type = this.options.versions === 'text' ? 'text' : 'bigint';
    return {
      text: update.text.replaceAll(place, `= ANY ($${update.values.length + 1}::${type}[])`),
      values: [...update.values, this.versions()],
    };
  }

  private versions(): readonly string[] {
    const { precondition, options } = this;
    const versions = precondition.kind === 'versions' ? precondition.versions : [];
    return options.versions === 'text' ? versions : versions.filter(isInteger);
  }

  private changed<Row extends { version: unknown }>(row: Row, { text }: Statement): Changed<Row> {
    const version = versionIn(row, 'the statement that changes', 'RETURNING');
    if (!/^\s*delete\b/i.test(text) && this.versions().includes(version))
      throw new TypeError(`the change left version ${version} as it was: the next writer could not tell`);
    return { version, etag: etagOf(version), row };
  }

  private required(detail: string, next: string): ProblemError {
    const { resource, action, requestId } = this.target;
    return new ProblemError({
      status: 428,
      code: 'precondition_required',
      detail,
      resource,
      action,
      next,
      request_id: requestId,
    });
  }
}

/** A column of another name would otherwise be told to callers as the version "undefined". */
function versionIn({ version }: { readonly version: unknown }, statement: string, clause: string): string {
  if (version !== undefined && version !== null) return String(version);
  throw new TypeError(
    `${statement} must return the version by that name: ${clause} version, or ${clause} rev AS version`,
  );
}

const MAX_BIGINT = 2n ** 63n - 1n;

function isInteger(text: string): boolean {
  return /^(0|[1-9]\d{0,18})$/.test(text) && BigInt(text) <= MAX_BIGINT;
}
