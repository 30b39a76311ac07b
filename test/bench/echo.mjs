import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { caller } from './client.mjs';
import { closedLoop } from './measure.mjs';

/** The ceiling of every unary figure: a call of the same kind to a server that decides nothing. */
export class Echo {
  #client;
  #call;
  #request;

  /** @param {Client} client @param {import('./client.mjs').Gen} gen */
  constructor(client, gen) {
    this.#client = client;
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer writ_${'x'.repeat(43)}`);
    this.#call = caller(client)(gen.fence.FenceServiceService.checkFence, metadata);
    this.#request = gen.fence.CheckFenceRequest.fromPartial({
      leaseId: 'f'.repeat(32),
      writes: [{ resource: 'item/checks/0/0', action: 'set', fencingToken: 1_800_000_000_000_000n }],
    });
  }

  /** @param {import('./coordinator.mjs').Launcher} launcher */
  static async start({ options, resources, gen }) {
    const path = fileURLToPath(new URL('echo-server.mjs', import.meta.url));
    const child = fork(path, [options.dist], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execArgv: [] });
    resources.add(async () => {
      if (child.exitCode !== null || !child.connected) return;
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    });
    const [{ port }] = await once(child, 'message');
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    resources.add(async () => client.close());
    return new Echo(client, gen);
  }

  /** @param {number} inFlight @param {number} milliseconds */
  measure(inFlight, milliseconds) {
    return closedLoop(inFlight, milliseconds, () => this.#call(this.#request));
  }

  close() {
    this.#client.close();
  }
}
