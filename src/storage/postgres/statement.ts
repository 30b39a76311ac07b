/** What the driver may be given for a parameter. */
export type SqlValue = string | number | boolean | null | readonly string[] | readonly number[];

/** A statement with named parameters, ready to be sent. */
export interface Statement {
  /** Unique per text: the name it is prepared under. */
  readonly name: string;
  readonly text: string;
  readonly parameters: readonly string[];
}

/** Postgres cuts a longer identifier off: two statements could then share a name, and the driver complains on stderr. */
const MAX_NAME_BYTES = 63;

/**
 * SQL with `$name` for a parameter instead of `$1`, so that whole statements stay readable and their parts can be
 * joined without counting. Throws when the name is too long to be told from others.
 *
 * @example
 * statement('read_event', 'SELECT body FROM writ.event WHERE namespace = $namespace AND revision = $revision')
 */
export function statement(name: string, sql: string): Statement {
  const preparedName = `writ_${name}`;
  if (Buffer.byteLength(preparedName) > MAX_NAME_BYTES) {
    throw new RangeError(`the statement name ${preparedName} is longer than ${MAX_NAME_BYTES} bytes`);
  }
  const parameters: string[] = [];
  const text = sql.replace(/\$([a-z_]+)\b/g, (_, parameter: string) => {
    let index = parameters.indexOf(parameter);
    if (index < 0) index = parameters.push(parameter) - 1;
    return `$${index + 1}`;
  });
  return { name: preparedName, text, parameters };
}

/** The values in the order of the statement's parameters; a missing one is a mistake of ours. */
export function valuesFor(sql: Statement, values: Readonly<Record<string, SqlValue>>): SqlValue[] {
  return sql.parameters.map((parameter) => {
    const value = values[parameter];
    if (value === undefined) throw new TypeError(`statement ${sql.name} lacks a value for $${parameter}`);
    return value;
  });
}
