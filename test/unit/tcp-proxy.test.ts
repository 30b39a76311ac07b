import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { TcpProxy } from '../support/tcp-proxy.js';

let server: Server;
let proxy: TcpProxy;

afterEach(async () => {
  await proxy?.stop();
  server?.close();
});

test('a bad network keeps the order of what it delivers, however its delay changes', async () => {
  // The proxy resets what it cuts.
  server = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy = await TcpProxy.start(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  const client = connect(proxy.port, '127.0.0.1').setNoDelay();
  client.on('error', () => undefined);
  await once(client, 'connect');
  let heard = '';
  client.setEncoding('utf8').on('data', (text) => {
    heard += text;
  });
  const arrived = async (text: string) => {
    while (!heard.includes(text)) await once(client, 'data');
  };
  client.write('a');
  await arrived('a');
  for (const [delayMs, text] of [
    [200, 'b'],
    [0, 'c'],
    [50, 'd'],
    [0, 'e'],
  ] as const) {
    proxy.delayMs = delayMs;
    client.write(text);
    // So that each is a chunk of its own: the proxy has taken it before the delay changes.
    await proxyHasTaken(client.bytesWritten);
  }
  await arrived('e');
  expect(heard).toBe('abcde');
  client.destroy();
});

async function proxyHasTaken(bytes: number): Promise<void> {
  while (proxy.taken < bytes) await new Promise((resolve) => setImmediate(resolve));
}
