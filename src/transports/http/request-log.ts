import type { Context } from 'hono';
import type { Principal } from '../../auth/principal.js';
import { methodOfRoute, type Route } from '../../auth/roles.js';
import { monotonicMicros } from '../../platform/clock.js';
import { LineBudget } from '../../platform/line-budget.js';
import type { Logger } from '../../platform/log.js';
import type { Metrics } from '../../platform/metrics.js';
import { startServerSpan } from '../../platform/tracing.js';
import { idsOf, NOTABLE } from '../call-log.js';
import { toldFault } from './problem.js';

/** What is known of a request by the time that it has been answered. */
export interface Remarks {
  requestId: string;
  /** Null: it was not found out, or nobody asks. */
  caller: Principal | null;
  /** What was asked, as far as the log may say it. */
  request: object;
  /** Why it was refused; absent: it was not. */
  error?: unknown;
}

// What a caller can cause in a loop must not fill the disk. Errors have a share of their own.
const MAX_LOG_LINES_PER_SECOND = 200;
const MAX_ERROR_LINES_PER_SECOND = 50;

/** Each request of a route that there is: a span that continues its caller's trace, a measure, and a line where it is worth one. */
export class RequestLog {
  readonly #metrics: Metrics;
  readonly #log: Logger;
  readonly #lines = new LineBudget(MAX_LOG_LINES_PER_SECOND);
  readonly #errorLines = new LineBudget(MAX_ERROR_LINES_PER_SECOND);

  constructor({ metrics, log }: { readonly metrics: Metrics; readonly log: Logger }) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** Answers within the span. `answer` does not throw: what goes wrong is in the remarks. */
  async observe(c: Context, route: Route, remarks: Remarks, answer: () => Promise<Response>): Promise<Response> {
    const startedAt = monotonicMicros();
    const span = startServerSpan(route, c.req.header('traceparent'), c.req.header('tracestate'));
    const response = await span.run(answer);
    const { status } = response;
    const micros = monotonicMicros() - startedAt;
    this.#metrics.httpAnswered(route, status, micros);
    const attributes = {
      'http.route': route,
      'http.response.status_code': status,
      'writ.request_id': remarks.requestId,
    };
    span.end(attributes, status >= 500);
    this.#tell(route, status, remarks, { traceId: span.traceId, micros });
    return response;
  }

  /** Something failed in the coordinator, in a part of an answer or while one was on its way. */
  trouble(route: string, error: unknown): void {
    if (!this.#errorLines.take()) return;
    this.#log.error({ err: error, route, ...this.#errorLines.suppressed() }, 'http request failed');
  }

  #tell(
    route: Route,
    status: number,
    remarks: Remarks,
    of: { readonly traceId: string; readonly micros: number },
  ): void {
    const { error, requestId, caller, request } = remarks;
    const level = levelOf(route, status, error);
    const budget = level === 'error' ? this.#errorLines : this.#lines;
    if (!this.#log.isLevelEnabled(level) || !budget.take()) return;
    const told = toldFault(error);
    const line = {
      route,
      status,
      ...(told === null ? {} : { reason: told.reason, detail: told.fault.message }),
      request_id: requestId,
      ...(caller === null ? {} : { principal: caller.name }),
      ...(of.traceId === '' ? {} : { trace_id: of.traceId }),
      ...idsOf(request),
      duration_ms: of.micros / 1000,
      ...budget.suppressed(),
    };
    this.#log[level](level === 'error' ? { ...line, err: error } : line, 'http');
  }
}

/** What gateways and verifiers ask by the thousand, and what is denied them is told where it is decided. */
const BY_THE_THOUSAND: ReadonlySet<Route> = new Set<Route>([
  'POST /oauth2/introspect',
  'GET /v1/fence/check',
  'POST /access/v1/evaluation',
  'POST /access/v1/evaluations',
  'GET /readyz',
]);

function levelOf(route: Route, status: number, error: unknown): 'debug' | 'info' | 'error' {
  if (status === 500) return 'error';
  if (error !== undefined && !BY_THE_THOUSAND.has(route)) return 'info';
  const method = methodOfRoute(route);
  return status < 400 && method !== null && NOTABLE.has(method) ? 'info' : 'debug';
}
