/** A schema's name goes into SQL as it stands: it must be a plain one. Throws RangeError. */
export function plainSchemaName(schema: string, what: string): string {
  if (/^[a-z_][a-z0-9_]{0,50}$/.test(schema)) return schema;
  throw new RangeError(`${what} must be a plain lower-case name, not ${JSON.stringify(schema)}`);
}

/**
 * In the SQL of the kit each function and operator is written so that what Postgres brings fits exactly, or is named with
 * its schema: where arguments would have to be converted, or any type is taken, whoever may create in a schema that the
 * service looks in could put one that fits better in its place, and have it run as the service.
 */

/**
 * Makes a schema, in a transaction in which others wait that would make it too: IF NOT EXISTS alone loses the race of two
 * replicas with an error.
 */
export function installSchemaSql(schema: string, part: string): string {
  return `
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('writ-${part}:${schema}:install', 0));
CREATE SCHEMA IF NOT EXISTS ${schema};`;
}
