import type { Principal } from '../../../auth/principal.js';
import { createBlockerNamer, RefusalViews } from '../../messages/views.js';
import type { AddRoute, RouteContext } from '../route.js';
import { admit, problemOf, type Serving } from './admission.js';
import type { ApiRoute } from './api-route.js';
import type { Asked } from './asked.js';
import { apiRoutes, openApiText } from './document.js';
import { jsonText } from './json-text.js';
import * as own from './own-answers.js';
import type { OwnRoute } from './own-routes.js';
import { RpcAnswers } from './rpc-answers.js';
import * as streaming from './stream-answers.js';

export interface ApiOptions extends Serving, streaming.StreamServing {
  /** Names blocking leases to those who may not know them. Throws before the start, too. */
  readonly blockerKey: () => Uint8Array;
}

/** Serves the API below /v1: all that a person or a program can ask of the coordinator without gRPC. */
export function mountApi(on: AddRoute, options: ApiOptions): void {
  const views = new RefusalViews((id) => createBlockerNamer(options.blockerKey())(id));
  const answers = new RpcAnswers(options, views);
  const ownAnswers: Readonly<Record<OwnRoute, (asked: Asked) => Response | Promise<Response>>> = {
    'GET /v1/principal': own.principal,
    'GET /v1/waiters': (asked) => own.waiters(asked, views),
    'GET /v1/conflict-map/schema': own.mapSchema,
    'POST /v1/conflict-map/test': own.testMap,
    'POST /v1/conflict-map/diff': own.diffMap,
    'POST /v1/conflict-map/rollback': own.rollbackMap,
    'GET /v1/events/stream': (asked) => streaming.eventStream(asked, options),
    'GET /v1/events/export': (asked) => streaming.eventExport(asked, options),
    'GET /v1/fence/changes': (asked) => streaming.fenceChanges(asked, options),
  };
  const serve = (route: ApiRoute, answer: Parameters<AddRoute>[1]): void =>
    on(
      route.route,
      (c, caller, remarks) => {
        c.header('x-content-type-options', 'nosniff');
        return answer(c, caller, remarks);
      },
      { told: (c, error) => problemOf(c, route, error), isLong: hasPages(route) },
    );
  const { rpc, others } = apiRoutes();
  for (const route of rpc) serve(route, (c, caller, remarks) => answers.answer(c, route, caller, remarks));
  for (const route of others) {
    serve(route, async (c, caller, { requestId }) =>
      ownAnswers[route.route](await askedOf(c, route, caller, { options, requestId })),
    );
  }
  const document = openApiText();
  on('GET /v1/openapi.json', (c) => jsonText(c, document), { isLong: true });
}

const hasPages = ({ parameters }: ApiRoute): boolean => parameters.some(({ name }) => name === 'page_size');

async function askedOf(
  c: RouteContext,
  route: ApiRoute,
  caller: Principal,
  { options, requestId }: { readonly options: ApiOptions; readonly requestId: string },
): Promise<Asked> {
  const { values, body, namespace, principal, version } = await admit(c, route, caller, options);
  return {
    c,
    api: options.api(),
    caller,
    context: { principal, namespace, requestId, deadlineMs: null, signal: c.req.raw.signal },
    values: new Map([...values].map(([{ name }, value]) => [name, value])),
    body,
    version,
  };
}
