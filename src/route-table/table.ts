import type { ChangeClass } from '../domain/change-class.js';
import type { PathIndex } from './path-index.js';
import type { Step } from './template.js';

/** One write that a request to a route makes. */
export interface RouteWrite {
  /** Template of the resource, as written. */
  readonly resource: string;
  readonly steps: readonly Step[];
  readonly action: string;
  readonly changeClass: ChangeClass;
  /** Who resolves a version conflict: of the route, else the class's own. */
  readonly resolver: string;
}

interface RouteBasics {
  /** Its place in the document, from 0. */
  readonly index: number;
  /** Lower case, no port; null: any. */
  readonly host: string | null;
  readonly methods: readonly string[];
  /** As written. */
  readonly path: string;
  readonly steps: readonly Step[];
  /** Captures that come from fields of the request message. */
  readonly fields: readonly FieldCapture[];
}

export interface FieldCapture {
  readonly name: string;
  /** `rest`: the field holds one segment or more, joined by "/". */
  readonly kind: 'capture' | 'rest';
  /** Dotted. */
  readonly field: string;
}

export interface WriteRoute extends RouteBasics {
  readonly kind: 'writes';
  readonly writes: readonly RouteWrite[];
  readonly whenUnreachable: 'deny' | 'allow_guarded';
}

export interface ReadRoute extends RouteBasics {
  readonly kind: 'reads';
}

export interface UnprotectedRoute extends RouteBasics {
  readonly kind: 'unprotected';
  /** Why no check is made. */
  readonly reason: string;
}

export type Route = WriteRoute | ReadRoute | UnprotectedRoute;

/** A checked route table; made by `parseRouteTable` only. */
export interface RouteTable {
  readonly routes: readonly Route[];
  readonly unrouted: 'deny' | 'allow_reads';
  /** Routes by host and method. */
  readonly byHost: ReadonlyMap<string, ReadonlyMap<string, PathIndex<Route>>>;
}

/** Key of the routes for any host in `byHost`: no host is empty. */
export const ANY_HOST = '';
