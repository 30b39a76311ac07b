import { Metadata, Server, ServerCredentials, status } from '@grpc/grpc-js';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { backoffMs } from '../../src/clients/common/backoff.js';
import { connectWrit } from '../../src/clients/common/connect.js';
import { Endpoints } from '../../src/clients/common/endpoints.js';
import { LeaseServiceService, type RenewLeasesResponse } from '../../src/gen/writ/v1/lease_service.js';
import { TcpProxy } from '../support/tcp-proxy.js';

describe('the pause before another try (F5)', () => {
  it('grows to its bound, and half of it is left to chance at every step', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 100 }),
        (failures, firstMs, times) => {
          const mostMs = firstMs * times;
          const whole = Math.min(mostMs, firstMs * 2 ** (failures - 1));
          const wait = backoffMs(failures, { firstMs, mostMs });
          expect(wait).toBeGreaterThanOrEqual(whole / 2);
          expect(wait).toBeLessThanOrEqual(whole);
        },
      ),
    );
  });

  it('is not the same for many, also at the bound', () => {
    const waits = Array.from({ length: 1_000 }, () => backoffMs(40, { firstMs: 100, mostMs: 2_000 }));
    expect(new Set(waits).size).toBeGreaterThan(900);
    const [least, most] = [Math.min(...waits), Math.max(...waits)];
    expect(most - least).toBeGreaterThan(900);
  });
});

describe('several endpoints', () => {
  const named = (count: number) => Array.from({ length: count }, (_, n) => `host-${n}:1`);

  it('are 1 to 16, each once', () => {
    const open = (endpoint: string) => endpoint;
    for (const wrong of [[], named(17), ['a:1', 'a:1']])
      expect(() => new Endpoints(wrong, open)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    expect(new Endpoints(named(16), open).current.endpoint).toMatch(/^host-/);
  });

  it('are taken in an order that is not the same for all clients', () => {
    const firsts = Array.from({ length: 200 }, () => new Endpoints(named(4), (one) => one).current.endpoint);
    expect(new Set(firsts)).toEqual(new Set(named(4)));
  });

  it('are gone round, each connected to once; many failures of one call for one step', () => {
    const opened: string[] = [];
    const replicas = new Endpoints(named(3), (endpoint) => opened.push(endpoint));
    const seen: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      const { endpoint } = replicas.current;
      seen.push(endpoint);
      replicas.moveOnFrom(endpoint);
      replicas.moveOnFrom(endpoint);
    }
    expect(new Set(seen.slice(0, 3))).toEqual(new Set(named(3)));
    expect(seen.slice(3)).toEqual(seen.slice(0, 3));
    expect(opened).toHaveLength(3);
  });
});

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A replica that answers renewals with its name; `ask` is what it answers instead. */
async function replica(name: string, answer: () => { code: status } | null = () => null): Promise<string> {
  const server = new Server();
  server.addService(
    { renewLeases: LeaseServiceService.renewLeases, getLease: LeaseServiceService.getLease },
    {
      renewLeases: (_call: unknown, reply: (error: object | null, value?: RenewLeasesResponse) => void) => {
        const refusal = answer();
        if (refusal !== null) reply({ ...refusal, metadata: new Metadata() });
        else reply(null, { results: [{ leaseId: name, notices: [] }], logRevision: 1n });
      },
      getLease: (_call: unknown, reply: (error: object | null, value?: object) => void) => {
        const refusal = answer();
        if (refusal !== null) reply({ ...refusal, metadata: new Metadata() });
        else reply(null, { lease: undefined, logRevision: 7n });
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  open.push(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

function client(endpoint: readonly string[], more: object = {}) {
  const writ = connectWrit({ endpoint, token: 'secret', ...more });
  open.push(() => writ.close());
  return writ;
}

const answeredBy = async (writ: ReturnType<typeof connectWrit>) =>
  (await writ.lease.renewLeases({ runId: 'r' })).results[0]?.leaseId;

describe('a client of several replicas', () => {
  it('repeats a call at another one when the first is out of reach, and stays there', async () => {
    const good = await replica('good');
    for (let round = 0; round < 8; round += 1) {
      const writ = client(['127.0.0.1:1', good]);
      expect(await writ.lease.getLease({ leaseId: 'x' })).toMatchObject({ logRevision: 7n });
      expect(await answeredBy(writ)).toBe('good');
    }
  });

  it('does not repeat a call that must not be, but makes the next one elsewhere', async () => {
    let calls = 0;
    const down = await replica('down', () => {
      calls += 1;
      return { code: status.UNAVAILABLE };
    });
    const writ = client([down, await replica('good')]);
    const first = await answeredBy(writ).catch((error: { code: string }) => error.code);
    expect(['good', 'UNAVAILABLE']).toContain(first);
    expect(await answeredBy(writ)).toBe('good');
    expect(calls).toBeLessThanOrEqual(1);
  });

  it('leaves one that does not answer, and keeps to one that answers anything else', async () => {
    const proxy = await TcpProxy.start(await replica('mute'));
    open.push(() => proxy.stop());
    proxy.hold('up', 'down');
    const writ = client([proxy.endpoint, await replica('good')]);
    for (let round = 0; round < 2; round += 1)
      await writ.lease.getLease({ leaseId: 'x' }, { timeoutMs: 300 }).catch(() => undefined);
    expect(await answeredBy(writ)).toBe('good');

    const missing = await replica('missing', () => ({ code: status.NOT_FOUND }));
    const other = client([missing]);
    await expect(other.lease.getLease({ leaseId: 'x' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('names at once an endpoint that is none, whichever it is', () => {
    expect(() => client(['127.0.0.1:1', 'nonsense'])).toThrow(/nonsense/);
    expect(() => client(['127.0.0.1:1', 'writ.example:7410'])).toThrow(/unencrypted/);
  });

  it('asks for a token before every call, where tokens are renewed', async () => {
    const seen: string[] = [];
    const server = new Server();
    server.addService(
      { getLease: LeaseServiceService.getLease },
      {
        getLease: (call: { metadata: Metadata }, reply: (error: null, value: object) => void) => {
          seen.push(String(call.metadata.get('authorization')[0]));
          reply(null, { lease: undefined, logRevision: 7n });
        },
      },
    );
    const port = await new Promise<number>((resolve) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_, bound) => resolve(bound));
    });
    open.push(() => server.forceShutdown());
    let made = 0;
    const writ = client([`127.0.0.1:${port}`], { token: async () => `token-${++made}` });
    await writ.lease.getLease({ leaseId: 'x' });
    await writ.lease.getLease({ leaseId: 'x' });
    expect(seen).toEqual(['Bearer token-1', 'Bearer token-2']);
  });
});
