/**
 * Route tables: which request to a service makes which writes (design: target kit and gateways). Pure, a layer of its
 * own: it knows nothing of the coordinator but what resources and change classes are, and nothing of servers or files.
 */
export { CHANGE_CLASSES, type ChangeClass } from '../domain/change-class.js';
export { type ChangeRule, changeRule, type OnConflict } from './change-class.js';
export { type EntityTag, readEntityTags } from './entity-tags.js';
export {
  type FoundRoute,
  findRoute,
  type MatchedWrite,
  matchRoute,
  type RoutedRequest,
  type RouteMatch,
} from './match.js';
export { parseRouteTable } from './parse.js';
export { PathIndex } from './path-index.js';
export {
  credentialIn,
  fencingTokensIn,
  isLeaseId,
  NO_LEASE,
  observedVersionIn,
  presentsCredential,
} from './presented.js';
export { RouteTableError, type RouteTableProblem } from './problems.js';
export { ResourcePattern } from './resource-pattern.js';
export type { RouteTableDocument } from './schema.js';
export { isResource } from './segment.js';
export type { ReadRoute, Route, RouteTable, RouteWrite, UnprotectedRoute, WriteRoute } from './table.js';
export { parseTemplate, type Step } from './template.js';
