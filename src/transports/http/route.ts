import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import type { Principal } from '../../auth/principal.js';
import type { Route } from '../../auth/roles.js';
import type { Remarks } from './request-log.js';

export interface HttpEnv {
  readonly Bindings: HttpBindings;
  /** `requestId`: of the request, as it came or as one was made for it; every answer has it. */
  readonly Variables: { readonly requestId: string };
}

export type RouteContext = Context<HttpEnv>;

/**
 * Serves a route. Who calls is known, may call it somewhere and has not called too often by the time that `answer` is
 * asked; what it throws is told by `told`, null: not at all, as it is the coordinator's trouble. `isLong`: JSON of some
 * size goes compressed to callers who take that.
 */
export type AddRoute = (
  route: Route,
  answer: (c: RouteContext, caller: Principal, remarks: Remarks) => Response | Promise<Response>,
  more?: { readonly told?: (c: RouteContext, error: unknown) => Response | null; readonly isLong?: boolean },
) => void;
