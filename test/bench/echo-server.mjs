/**
 * A grpc-js server that answers fence checks without looking at anything: what the transport alone can do. Run by
 * `echo.mjs` in a process of its own; ends with the bench.
 */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { loadGenerated } from './client.mjs';

const { fence } = await loadGenerated(String(process.argv[2]));
const answer = fence.CheckFenceResponse.fromPartial({
  allowed: true,
  results: [{ allowed: true, reason: fence.FenceReason.FENCE_REASON_OK }],
  logRevision: 1n,
  validFor: { seconds: 60n, nanos: 0 },
});
const server = new Server({ 'grpc.enable_channelz': 0 });
server.addService(fence.FenceServiceService, {
  checkFence: (/** @type {unknown} */ _, /** @type {(error: null, answer: unknown) => void} */ done) =>
    done(null, answer),
});
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.send?.({ port });
});
process.once('disconnect', () => process.exit());
