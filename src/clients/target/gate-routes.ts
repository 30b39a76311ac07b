import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { parseRouteTable, type RouteTable } from '../../route-table/index.js';

/**
 * Reads a route table from a file, YAML or JSON. Throws a RouteTableError that says all that is wrong with it.
 *
 * @example
 * const routes = readRouteTable(new URL('routes.yaml', import.meta.url));
 */
export function readRouteTable(file: string | URL): RouteTable {
  const text = readFileSync(file, 'utf8');
  try {
    return parseRouteTable(parse(text, { maxAliasCount: 0 }));
  } catch (error) {
    throw error instanceof Error && error.name === 'YAMLParseError'
      ? new TypeError(`${String(file)} is no YAML: ${error.message}`, { cause: error })
      : error;
  }
}
