import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { afterEach, expect, it } from 'vitest';
import { connectWrit } from '../../src/clients/common/connect.js';
import { acquire } from '../../src/clients/runner/acquire.js';
import { LeaseServiceService, type SessionRequest, SessionResponse } from '../../src/gen/writ/v1/lease_service.js';
import { EndReason, LeaseState } from '../../src/gen/writ/v1/types.js';

const LEASE_ID = 'ab'.repeat(16);
const open: (() => void)[] = [];

afterEach(() => {
  for (const close of open.splice(0)) close();
});

/** A coordinator that grants, and in the same message tells the end of what it has granted. */
async function coordinator(): Promise<string> {
  const server = new Server();
  const session = (stream: ServerDuplexStream<SessionRequest, SessionResponse>): void => {
    stream.on('data', ({ calls }: SessionRequest) => {
      for (const { number, call } of calls) {
        if (call?.$case !== 'acquireWriteSet') continue;
        const lease = {
          leaseId: LEASE_ID,
          runId: call.value.runId,
          state: LeaseState.LEASE_STATE_ACTIVE,
          entries: [{ resource: 'doc/a', fencingToken: 1n }],
          expiresIn: { seconds: 60n, nanos: 0 },
        };
        const granted = { outcome: { $case: 'lease' as const, value: lease } };
        const lost = { endReason: EndReason.END_REASON_REVOKED };
        stream.write(
          SessionResponse.fromPartial({
            answers: [{ number, outcome: { $case: 'acquireWriteSet', value: granted } }],
            events: [{ leaseId: LEASE_ID, event: { $case: 'lost', value: lost } }],
          }),
        );
      }
    });
    stream.on('end', () => stream.end());
  };
  server.addService({ session: LeaseServiceService.session }, { session });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  open.push(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

it('hears of an end that comes in the message that grants', async () => {
  const client = connectWrit({ endpoint: await coordinator(), token: 'secret' });
  open.push(() => client.close());
  const lease = await acquire(client, { runId: 'r', resources: [{ resource: 'doc/a', actions: ['replace'] }] });
  await expect.poll(() => lease.signal.aborted).toBe(true);
  expect(lease.signal.reason).toMatchObject({ leaseId: LEASE_ID, reason: 'ended' });
});
