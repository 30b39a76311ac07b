import { z } from 'zod';
import { CHANGE_CLASSES } from '../domain/change-class.js';

/** The one schema of a route table. It is closed: unknown keys are errors. */

/** Routes of one table. */
const MAX_ROUTES = 10_000;
/** Writes of one route: what one request changes. */
const MAX_WRITES = 32;

/** Text of one line, without control characters. */
function line(most: number) {
  return z
    .string()
    .min(1, { error: 'must not be empty' })
    .max(most, { error: `must be at most ${most} characters` })
    .refine((text) => !/\p{Cc}/u.test(text), { error: 'must be one line without control characters' });
}

const action = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/, {
  error: 'must be 1 to 128 letters, digits and any of . _ : -, beginning with a letter or digit',
});

const method = z.string().regex(/^[A-Z]{1,32}$/, { error: 'must be a method in upper case, such as POST' });

/** As a request names it, in lower case: a name, an IPv4 address, or an IPv6 one in brackets. */
export const HOST =
  /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*|\[[0-9a-f:.]{2,45}\])$/;

const host = line(255).regex(HOST, { error: 'must be a host name in lower case, without a port' });

const captureName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}(\.\.\.)?$/, {
  error: 'must be the name of a capture: letters, digits, "_" and "-", and "..." at the end for several segments',
});

const fieldPath = z.string().regex(/^[A-Za-z_]\w{0,63}(\.[A-Za-z_]\w{0,63}){0,7}$/, {
  error: 'must be a field of the request such as env, or target.env',
});

const write = z.strictObject({
  /** Template of the resource, with the captures of the route's path. */
  resource: line(1_280),
  action,
  /** Without one, nothing may be written unattended (W4). */
  change_class: z.enum(CHANGE_CLASSES),
  resolver: line(256).exactOptional(),
});

const route = z.strictObject({
  host: host.exactOptional(),
  method: z.union([
    method,
    z.array(method).min(1, { error: 'must name a method' }).max(16, { error: 'must be at most 16' }),
  ]),
  path: line(2_048),
  /**
   * Captures that come from fields of the request message rather than from the path, for gRPC: name to field, dots for
   * fields of fields (`env: target.env`). A name that ends in "..." takes several segments.
   */
  fields: z.record(captureName, fieldPath).exactOptional(),
  writes: z
    .array(write)
    .min(1, { error: 'must be 1 to 32' })
    .max(MAX_WRITES, { error: 'must be 1 to 32' })
    .exactOptional(),
  reads: z.literal(true).exactOptional(),
  unprotected: line(500).exactOptional(),
  /**
   * What happens to a write of this route while the coordinator cannot be asked (C7). `allow_guarded`: a credential that
   * the target verifies by itself lets it in, as far as the guard where the data lives takes its token.
   */
  when_unreachable: z.enum(['deny', 'allow_guarded']).exactOptional(),
});

export const routeTableSchema = z.strictObject({
  version: z.literal(1),
  routes: z
    .array(route)
    .min(1, { error: 'must hold a route' })
    .max(MAX_ROUTES, { error: `must be at most ${MAX_ROUTES}` }),
  /** `allow_reads`: GET, HEAD and OPTIONS without a route go through unchecked. */
  unrouted: z.enum(['deny', 'allow_reads']).exactOptional(),
});

/** A route table as it is written. */
export type RouteTableDocument = z.input<typeof routeTableSchema>;
export type RouteDocument = RouteTableDocument['routes'][number];
export type WriteDocument = NonNullable<RouteDocument['writes']>[number];
