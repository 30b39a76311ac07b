import {
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Component, Lifecycle, onStopSignal } from '../../src/platform/lifecycle.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { parseTraceparent, startServerSpan } from '../../src/platform/tracing.js';

const SILENT = createLogger('silent');

describe('a lifecycle', () => {
  const events: string[] = [];

  function component(name: string, more: Partial<Component> = {}): Component {
    return {
      name,
      start: async () => void events.push(`start ${name}`),
      stop: async () => void events.push(`stop ${name}`),
      ...more,
    };
  }

  function lifecycle(...components: Component[]): Lifecycle {
    events.length = 0;
    const made = new Lifecycle(SILENT);
    for (const each of components) made.add(each);
    return made;
  }

  it('starts in order and stops in reverse, once', async () => {
    const life = lifecycle(component('a'), component('b'));
    await Promise.all([life.start(), life.start()]);
    expect(await Promise.all([life.stop(1000), life.stop(1000)])).toEqual([[], []]);
    expect(events).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('stops what had begun when a start fails', async () => {
    const failing = component('b', { start: () => Promise.reject(new Error('no')) });
    const life = lifecycle(component('a'), failing, component('c'));
    await expect(life.start()).rejects.toThrow('no');
    await life.stop(1000);
    expect(events).toEqual(['start a', 'stop b', 'stop a']);
  });

  it('ends by its deadline, names what it left behind, and stops the rest', async () => {
    const stuck = component('b', { stop: () => new Promise(() => undefined) });
    const broken = component('c', { stop: () => Promise.reject(new Error('no')) });
    const life = lifecycle(component('a'), stuck, broken);
    await life.start();
    const begun = performance.now();
    expect(await life.stop(200)).toEqual(['c', 'b']);
    expect(performance.now() - begun).toBeLessThan(1000);
    expect(events.at(-1)).toBe('stop a');
  });

  it('starts nothing more once a stop was asked for', async () => {
    let proceed: () => void = () => undefined;
    const slow = component('a', {
      start: () =>
        new Promise((resolve) => {
          proceed = resolve;
        }),
    });
    const life = lifecycle(slow, component('b'));
    const starting = life.start();
    const stopping = life.stop(1000);
    proceed();
    await expect(starting).rejects.toMatchObject({ exitCode: 0 });
    await stopping;
    expect(events).toEqual(['stop a']);
  });

  it('stops at the first signal, passes over its echo, and exits at a second one', () => {
    let now = 10_000;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
    const stopped: string[] = [];
    const off = onStopSignal((signal) => stopped.push(signal));
    process.emit('SIGTERM', 'SIGTERM');
    expect([stopped, exit.mock.calls]).toEqual([['SIGTERM'], []]);
    now += 500;
    process.emit('SIGINT', 'SIGINT');
    expect([stopped, exit.mock.calls]).toEqual([['SIGTERM'], []]);
    now += 1_000;
    process.emit('SIGINT', 'SIGINT');
    expect(exit).toHaveBeenCalledWith(130);
    off();
    exit.mockRestore();
    clock.mockRestore();
  });
});

describe('the log', () => {
  it('hides secrets', () => {
    const lines: string[] = [];
    const log = createLogger('debug', { write: (line) => void lines.push(line) });
    log.info({ token: 'hunter2', request: { authorization: 'Bearer hunter2' }, lease_id: '0123456789abcdef' }, 'a');
    log.error({ err: new Error('cannot reach postgres://writ:hunter2@db:5432/writ') }, 'b');
    expect(lines.join('')).not.toContain('hunter2');
    const [first, second] = lines.map((line) => JSON.parse(line));
    expect(first).toMatchObject({ level: 'info', service: 'writ', token: '[hidden]', lease_id: '01234567', msg: 'a' });
    expect(second.err.message).toBe('cannot reach postgres://writ:[hidden]@db:5432/writ');
    expect(second.err.stack).toContain('platform.test');
  });
});

describe('metrics', () => {
  it('render what was counted and what is true now', async () => {
    const metrics = createMetrics();
    metrics.granted('default');
    metrics.refused('default', 'held');
    metrics.denied('default', 'stale_token', 2);
    metrics.leaseEnded('default', 'expired');
    metrics.leaseEnded('default', 'released', 3);
    metrics.batchAppended(3, 7, 2500);
    metrics.checked(1500);
    let rows = [
      {
        namespace: 'default',
        liveLeases: 5,
        waiters: 2,
        oldestWaiterMicros: 3_500_000,
        logLag: 1,
        queueDepth: 9,
        openWrites: 3,
        inDoubt: 2,
        oldestInDoubtMicros: 5_000_000,
        freezes: 4,
        stoppingRuns: 1,
        clockOffsetMicros: -250_000,
      },
    ];
    metrics.gauges(() => rows);
    metrics.published('default', 4);
    metrics.tailer(() => [{ namespace: 'default', events: 6 }]);
    expect((await metrics.render()).text).not.toMatch(/^writ_redis_connected /m);
    metrics.redis(() => true);
    metrics.listeners(() => ({ sessions: 2, sessionLeases: 7, watches: 3 }));
    const { text } = await metrics.render();
    for (const line of [
      'writ_leases_granted_total{namespace="default"} 1',
      'writ_refusals_total{namespace="default",kind="held"} 1',
      'writ_fence_denials_total{namespace="default",reason="stale_token"} 2',
      'writ_leases_expired_share 0.25',
      'writ_batch_events_sum 7',
      'writ_batch_duration_seconds_sum 0.0025',
      'writ_fence_check_duration_seconds_count 1',
      'writ_leases_live{namespace="default"} 5',
      'writ_waiters{namespace="default"} 2',
      'writ_oldest_waiter_age_seconds{namespace="default"} 3.5',
      'writ_log_lag_revisions{namespace="default"} 1',
      'writ_command_queue_depth{namespace="default"} 9',
      'writ_open_writes{namespace="default"} 3',
      'writ_writes_in_doubt{namespace="default"} 2',
      'writ_oldest_in_doubt_age_seconds{namespace="default"} 5',
      'writ_tailer_published_total{namespace="default"} 4',
      'writ_tailer_lag_events{namespace="default"} 6',
      'writ_redis_connected 1',
      'writ_sessions 2',
      'writ_session_leases 7',
      'writ_fence_watches 3',
      'writ_freezes{namespace="default"} 4',
      'writ_runs_stopping{namespace="default"} 1',
      'writ_database_clock_offset_seconds{namespace="default"} -0.25',
      'writ_ready 0',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
    rows = [];
    expect((await metrics.render()).text).not.toContain('writ_leases_live{');
  });
});

describe('tracing', () => {
  const TRACE = '0af7651916cd43dd8448eb211c80319c';
  const SPAN = 'b7ad6b7169203331';

  afterEach(() => {
    trace.disable();
    context.disable();
  });

  it('reads W3C trace contexts', () => {
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`, 'vendor=1')).toMatchObject({
      traceId: TRACE,
      spanId: SPAN,
      traceFlags: 1,
      isRemote: true,
    });
    expect(parseTraceparent(`01-${TRACE}-${SPAN}-00-later`)).toMatchObject({ traceFlags: 0 });
  });

  it.each([
    '',
    'garbage',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  ])('takes no malformed one: %s', (header) => {
    expect(parseTraceparent(header)).toBeUndefined();
  });

  it('has the trace id without an SDK, too', () => {
    expect(startServerSpan('x', `00-${TRACE}-${SPAN}-01`).traceId).toBe(TRACE);
    expect(startServerSpan('x', undefined).traceId).toBe('');
  });

  it('hands spans with the caller as parent to an SDK that is loaded', () => {
    const seen: { parent: string | undefined; attributes: object; ended: boolean }[] = [];
    const startSpan = (_name: string, _options: SpanOptions | undefined, parent: Context | undefined): Span => {
      const record = {
        parent: parent === undefined ? undefined : trace.getSpanContext(parent)?.spanId,
        attributes: {},
        ended: false,
      };
      seen.push(record);
      const span = trace.wrapSpanContext({ traceId: TRACE, spanId: '1111111111111111', traceFlags: 1 });
      return Object.assign(Object.create(span) as Span, {
        isRecording: () => true,
        setAttributes: (attributes: object) => Object.assign(record.attributes, attributes),
        end: () => {
          record.ended = true;
        },
      });
    };
    let active = ROOT_CONTEXT;
    const manager: ContextManager = {
      active: () => active,
      with: (inner, work, self, ...args) => {
        const outer = active;
        active = inner;
        try {
          return work.call(self as never, ...args);
        } finally {
          active = outer;
        }
      },
      bind: (_context, target) => target,
      enable: () => manager,
      disable: () => manager,
    };
    context.setGlobalContextManager(manager);
    trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) as unknown as Tracer });
    const span = startServerSpan('writ.v1.FenceService/CheckFence', `00-${TRACE}-${SPAN}-01`);
    expect(span.run(() => trace.getActiveSpan()?.spanContext().spanId)).toBe('1111111111111111');
    span.end({ 'rpc.system': 'grpc' }, false);
    expect(seen).toEqual([{ parent: SPAN, attributes: { 'rpc.system': 'grpc' }, ended: true }]);
  });
});
