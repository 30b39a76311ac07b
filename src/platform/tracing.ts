import {
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

/**
 * Spans that carry the caller's trace context, by OpenTelemetry's API alone: without an SDK they cost
 * next to nothing, and an SDK that the operator loads (`node --import`) exports them.
 *
 * The W3C headers are read here, since the API has no propagator of its own.
 */

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_TRACESTATE_LENGTH = 512;

/** The remote parent that a W3C `traceparent` (and `tracestate`) names; undefined when there is none or it is malformed. */
export function parseTraceparent(traceparent: string, tracestate = ''): SpanContext | undefined {
  const found = TRACEPARENT.exec(traceparent);
  if (found === null) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = found;
  // A later version may append fields; version 00 may not, and ff is reserved.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  const parent: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & 1,
    isRemote: true,
    ...(tracestate !== '' && tracestate.length <= MAX_TRACESTATE_LENGTH
      ? { traceState: createTraceState(tracestate) }
      : {}),
  };
  return isSpanContextValid(parent) ? parent : undefined;
}

/** One server span, from its start to its end. */
export interface ServerSpan {
  /** Runs `work` inside the span, so that spans started there become its children. */
  run<T>(work: () => T): T;
  /** Trace id for the log; empty when there is no trace. */
  readonly traceId: string;
  end(attributes: Readonly<Record<string, string | number>>, failed: boolean): void;
}

/** Starts the span of one call. */
export function startServerSpan(name: string, traceparent: string | undefined, tracestate?: string): ServerSpan {
  const parent = traceparent === undefined ? undefined : parseTraceparent(traceparent, tracestate);
  const outer: Context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
  // Asked for at each call: an SDK may be registered after this module was loaded.
  const span: Span = trace.getTracer('writ').startSpan(name, { kind: SpanKind.SERVER }, outer);
  return new StartedSpan(span, outer);
}

class StartedSpan implements ServerSpan {
  readonly #span: Span;
  readonly #outer: Context;

  constructor(span: Span, outer: Context) {
    this.#span = span;
    this.#outer = outer;
  }

  get traceId(): string {
    const own = this.#span.spanContext();
    return isSpanContextValid(own) ? own.traceId : '';
  }

  run<T>(work: () => T): T {
    if (!this.#span.isRecording()) return work();
    return context.with(trace.setSpan(this.#outer, this.#span), work);
  }

  end(attributes: Readonly<Record<string, string | number>>, failed: boolean): void {
    if (this.#span.isRecording()) {
      this.#span.setAttributes(attributes);
      if (failed) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}
