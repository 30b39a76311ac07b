import type { JsonObject } from '@bufbuild/protobuf';
import type { Principal } from '../../../auth/principal.js';
import { authorize, type Method } from '../../../auth/roles.js';
import type { CallContext } from '../../../services/api.js';
import type { RefusalViews } from '../../messages/views.js';
import { createMethods } from '../../methods/index.js';
import type { MethodCall, Unary } from '../../methods/method.js';
import { namespaceOf, orDefault } from '../../namespace-of.js';
import type { Remarks } from '../request-log.js';
import type { RouteContext } from '../route.js';
import { admit, type Serving } from './admission.js';
import { jsonText } from './json-text.js';
import { toMessage } from './read-request.js';
import type { RpcRoute } from './routes.js';
import { localName, type Rpc } from './rpcs.js';
import { WrongRequest } from './wrong-request.js';

/** The RPCs over HTTP: their requests read, the methods called that gRPC calls too, their answers written. */

/** One request, as the methods see it. */
class HttpCall implements MethodCall {
  namespace = '';
  readonly deadlineMs = null;
  readonly #authorizedIn: string | null;

  constructor(
    readonly principal: Principal,
    authorizedIn: string | null,
    readonly requestId: string,
    readonly signal: AbortSignal,
  ) {
    this.#authorizedIn = authorizedIn;
  }

  within(namespace: string): CallContext {
    if (orDefault(namespace) !== this.#authorizedIn) throw new Error('the call is authorised for another namespace');
    this.namespace = namespace;
    return this;
  }
}

/** Answers routes that say what an RPC says. */
export class RpcAnswers {
  readonly #methods: Readonly<Record<string, Readonly<Record<string, Unary<never, object>>>>>;
  readonly #serving: Serving;

  constructor(serving: Serving, views: RefusalViews) {
    this.#serving = serving;
    this.#methods = createMethods(views);
  }

  /** The caller may call the route somewhere. Throws what the request is wrong by. */
  async answer(c: RouteContext, route: RpcRoute, caller: Principal, remarks: Remarks): Promise<Response> {
    const { rpc, versionField } = route;
    const { values, body, version } = await admit(c, route, caller, this.#serving);
    const more = versionField === null || version === null ? [] : [[versionField, version] as const];
    const request = read(rpc, toMessage(body, values, more));
    remarks.request = request;
    const where = namespaceOf(rpc.method, request);
    const principal = authorize(caller, rpc.method, where);
    const call = new HttpCall(principal, where, remarks.requestId, c.req.raw.signal);
    const answer = await this.#methodOf(rpc.method)(this.#serving.api(), call, request as never);
    return respond(c, route, await rpc.write(answer));
  }

  #methodOf(method: Method): Unary<never, object> {
    const [service = '', name = ''] = method.split('/');
    const found = this.#methods[service]?.[localName(name)];
    if (found === undefined) throw new Error(`${method} has more than one answer`);
    return found;
  }
}

function read(rpc: Rpc, json: JsonObject): object {
  try {
    return rpc.read(json);
  } catch (error) {
    // What has the right form and is still no such value: a time that no calendar has, a number beyond 64 bits.
    throw new WrongRequest([{ field: 'body', description: (error as Error).message }]);
  }
}

function respond(c: RouteContext, { etag }: RpcRoute, answer: object): Response {
  if (etag === null) return jsonText(c, JSON.stringify(answer));
  const tag = `"${String((answer as Record<string, unknown>)[etag])}"`;
  const headers = { etag: tag, 'cache-control': 'private, no-cache' };
  const known = c.req.method === 'PUT' ? undefined : c.req.header('if-none-match');
  const isKnown = known?.split(',').some((one) => ['*', tag].includes(one.trim().replace(/^W\//, ''))) === true;
  return isKnown ? c.body(null, 304, headers) : c.json(answer, 200, headers);
}
