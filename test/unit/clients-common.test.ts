import { type AddressInfo, createServer } from 'node:net';
import { Metadata, Server, ServerCredentials, status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { parseEndpoint } from '../../src/clients/common/channel.js';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import { durationMs, timestampMicros, toDuration, toTimestamp } from '../../src/clients/common/time.js';
import { BadRequest, ErrorInfo, RetryInfo } from '../../src/gen/google/rpc/error_details.js';
import { Status } from '../../src/gen/google/rpc/status.js';
import {
  type AcquireWriteSetRequest,
  LeaseServiceService,
  type RenewLeasesRequest,
} from '../../src/gen/writ/v1/lease_service.js';
import { type CreateRunRequest, RunServiceService } from '../../src/gen/writ/v1/run_service.js';

type Handler = (
  request: never,
  metadata: Metadata,
) => object | { readonly error: { code: status; details?: string; metadata?: Metadata } };

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

/** A server that answers these methods, and a client of it. */
async function coordinator(
  handlers: Readonly<Record<string, Handler>>,
  options: { readonly namespace?: string; readonly timeoutMs?: number } = {},
): Promise<WritClient> {
  const server = new Server();
  for (const service of [LeaseServiceService, RunServiceService]) {
    const methods = Object.keys(service).map((name) => {
      const handle = (
        call: { request: never; metadata: Metadata },
        reply: (error: object | null, value?: object) => void,
      ) => {
        const answer = handlers[name]?.(call.request, call.metadata) ?? { error: { code: status.UNIMPLEMENTED } };
        if ('error' in answer) reply(answer.error as object);
        else reply(null, answer);
      };
      return [name, handle] as const;
    });
    server.addService(service, Object.fromEntries(methods) as unknown as UntypedServiceImplementation);
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const client = connectWrit({ endpoint: `127.0.0.1:${port}`, token: 'secret', ...options });
  open.push(
    () => client.close(),
    () => server.forceShutdown(),
  );
  return client;
}

const unavailable = { error: { code: status.UNAVAILABLE, details: 'starting' } };

describe('a call', () => {
  it('carries the token, a request id, the trace context, and the namespace where none is named', async () => {
    const seen: { request: CreateRunRequest; metadata: Metadata }[] = [];
    const record: Handler = (request, metadata) => {
      seen.push({ request, metadata });
      return { run: undefined, logRevision: 1n };
    };
    const client = await coordinator({ createRun: record }, { namespace: 'staging' });
    await client.run.createRun({ purpose: 'x' }, { requestId: 'r-1', traceparent: '00-aa-bb-01' });
    await client.run.createRun({ namespace: 'other' });
    const [first, second] = seen;
    expect(first?.metadata.get('authorization')).toEqual(['Bearer secret']);
    expect(first?.metadata.get('x-request-id')).toEqual(['r-1']);
    expect(first?.metadata.get('traceparent')).toEqual(['00-aa-bb-01']);
    expect(first?.request).toMatchObject({ namespace: 'staging', purpose: 'x' });
    expect(second?.request.namespace).toBe('other');
    expect(second?.metadata.get('x-request-id')[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('is repeated with the same idempotency key while the coordinator is unavailable', async () => {
    const keys: string[] = [];
    const flaky: Handler = (request: AcquireWriteSetRequest) => {
      keys.push(request.idempotencyKey);
      return keys.length < 3 ? unavailable : { outcome: undefined, logRevision: 7n, credentials: [] };
    };
    const client = await coordinator({ acquireWriteSet: flaky as Handler });
    expect(await client.lease.acquireWriteSet({ runId: 'r' })).toMatchObject({ logRevision: 7n });
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    await client.lease.acquireWriteSet({ runId: 'r', idempotencyKey: 'mine' });
    expect(keys.at(-1)).toBe('mine');
  });

  it('is not repeated by itself where that would not be the same, nor after any other fault', async () => {
    let [renewals, acquires] = [0, 0];
    const client = await coordinator({
      renewLeases: ((_request: RenewLeasesRequest) => {
        renewals += 1;
        return unavailable;
      }) as Handler,
      acquireWriteSet: () => {
        acquires += 1;
        return { error: { code: status.ABORTED } };
      },
    });
    await expect(client.lease.renewLeases({ runId: 'r' })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      retryable: true,
    });
    await expect(client.lease.acquireWriteSet({ runId: 'r' })).rejects.toMatchObject({
      code: 'ABORTED',
      retryable: false,
    });
    expect([renewals, acquires]).toEqual([1, 1]);
  });

  it('gives up within its time, retries included, and says why', async () => {
    const client = await coordinator({ getRun: () => unavailable });
    const began = performance.now();
    await expect(client.run.getRun({ runId: 'r' }, { timeoutMs: 300 })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: 'starting',
    });
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  it('ends with the reason of whoever gave up', async () => {
    const client = await coordinator({ getRun: () => unavailable });
    const giveUp = new AbortController();
    const call = client.run.getRun({ runId: 'r' }, { signal: giveUp.signal });
    const reason = new Error('enough');
    giveUp.abort(reason);
    await expect(call).rejects.toBe(reason);
    await expect(client.run.getRun({ runId: 'r' }, { signal: giveUp.signal })).rejects.toBe(reason);
  });

  it('says in words that nobody is there', async () => {
    const client = connectWrit({ endpoint: '127.0.0.1:1', token: 't', timeoutMs: 200 });
    open.push(() => client.close());
    const error = await client.run.getRun({ runId: 'r' }).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'UNAVAILABLE', retryable: true });
    expect((error as WritError).message).toMatch(/^the coordinator at 127\.0\.0\.1:1 cannot be reached: /);
  });
});

describe('what callers without types give', () => {
  const answering = { listRuns: () => ({ runs: [], nextPageToken: '', logRevision: 1n }) };
  const wrongTime = { code: 'INVALID_ARGUMENT', violations: [{ field: 'timeoutMs' }] };

  // By grpc-js it would be an unhandled rejection, which ends the process.
  it.each([Number.NaN, '5000', null])('is no time: %s', async (timeoutMs) => {
    const client = await coordinator(answering);
    await expect(client.run.listRuns({}, { timeoutMs: timeoutMs as number })).rejects.toMatchObject(wrongTime);
    if (timeoutMs !== null)
      expect(() => connectWrit({ endpoint: '127.0.0.1:1', token: 'x', timeoutMs: timeoutMs as number })).toThrow(
        'timeoutMs: must be a number of milliseconds',
      );
  });

  it.each([Number.POSITIVE_INFINITY, 1e12])('is a long time: %s', async (timeoutMs) => {
    const client = await coordinator(answering, { timeoutMs });
    expect(await client.run.listRuns({})).toMatchObject({ runs: [] });
    expect(await client.run.listRuns({}, { timeoutMs })).toMatchObject({ runs: [] });
  });

  it.each([5, '', undefined])('is no token: %s', async (token) => {
    const none = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('token') };
    expect(() => connectWrit({ endpoint: '127.0.0.1:1', token: token as string })).toThrow(
      expect.objectContaining(none),
    );
    const client = connectWrit({ endpoint: '127.0.0.1:1', token: () => token as string });
    open.push(() => client.close());
    await expect(client.run.listRuns({})).rejects.toMatchObject(none);
  });
});

describe('somebody else on the port', () => {
  it('is named, with how long it was waited for', async () => {
    const mute = createServer(() => undefined);
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    open.push(() => mute.close());
    const endpoint = `127.0.0.1:${(mute.address() as AddressInfo).port}`;
    const client = connectWrit({ endpoint, token: 't', timeoutMs: 200 });
    open.push(() => client.close());
    const error = (await client.run.getRun({ runId: 'r' }).catch((e: unknown) => e)) as WritError;
    expect(error.code).toBe('DEADLINE_EXCEEDED');
    expect(error.message).toContain(`no answer from ${endpoint} in time`);
  });
});

describe('WritError', () => {
  const any = (type: string, value: Uint8Array) => ({
    typeUrl: `type.googleapis.com/google.rpc.${type}`,
    value: Buffer.from(value),
  });

  it('has what the coordinator sent along', async () => {
    const metadata = new Metadata();
    const details = [
      any('ErrorInfo', ErrorInfo.encode({ reason: 'MAP_INVALID', domain: 'writ', metadata: { line: '3' } }).finish()),
      any(
        'BadRequest',
        BadRequest.encode(
          BadRequest.fromPartial({ fieldViolations: [{ field: 'document', description: 'is no YAML' }] }),
        ).finish(),
      ),
      any('RetryInfo', RetryInfo.encode({ retryDelay: toDuration(1_500) }).finish()),
      any('Something', new Uint8Array([1, 2, 3])),
    ];
    metadata.set('grpc-status-details-bin', Buffer.from(Status.encode({ code: 3, message: 'm', details }).finish()));
    const client = await coordinator({
      getRun: () => ({ error: { code: status.INVALID_ARGUMENT, details: 'bad', metadata } }),
    });
    const error = await client.run.getRun({ runId: 'r' }, { requestId: 'r-9' }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(WritError);
    expect(error).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'bad',
      reason: 'MAP_INVALID',
      metadata: { line: '3' },
      violations: [{ field: 'document', description: 'is no YAML' }],
      retryAfterMs: 1_500,
      retryable: true,
      requestId: 'r-9',
    });
  });

  it('does without details that it cannot read', async () => {
    const metadata = new Metadata();
    metadata.set('grpc-status-details-bin', Buffer.from([0xff, 0xff, 0xff]));
    const client = await coordinator({
      getRun: () => ({ error: { code: status.NOT_FOUND, details: 'no run', metadata } }),
    });
    await expect(client.run.getRun({ runId: 'r' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'no run',
      reason: '',
      violations: [],
    });
  });
});

describe('times', () => {
  it.each([0, 1, 999_999, 1_764_425_000_123_456, -1, -1_500_000])('keep the microseconds of %d', (micros) => {
    expect(timestampMicros(toTimestamp(micros))).toBe(micros);
  });

  it.each([0, 0.001, 250, 1_500.25, 3_600_000])('keep the length of %d ms', (ms) => {
    expect(durationMs(toDuration(ms))).toBeCloseTo(ms, 6);
  });

  it('are absent when they are absent', () => {
    expect([durationMs(undefined), timestampMicros(undefined)]).toEqual([undefined, undefined]);
    expect(() => toDuration(Number.POSITIVE_INFINITY)).toThrow(RangeError);
    const text = '5s' as unknown as number;
    expect(() => toDuration(text, 'ttlMs')).toThrow('ttlMs must be a finite number of milliseconds, and is 5s');
  });
});

describe('parseEndpoint', () => {
  it.each([
    ['127.0.0.1:7410', '127.0.0.1:7410', false],
    ['[::1]:7410', '[::1]:7410', false],
    ['http://writ.internal:80', 'writ.internal:80', false],
    ['https://writ.example:443/', 'writ.example:443', true],
  ])('reads %s', (endpoint, address, secure) => {
    expect(parseEndpoint(endpoint)).toEqual({ address, secure });
  });

  it.each(['', 'localhost', 'ftp://a:1', 'https://a:1/path', 'user@host:1', 'a b:1'])('refuses %j', (endpoint) => {
    expect(() => parseEndpoint(endpoint)).toThrow(WritError);
  });
});
