import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import type { Express } from 'express';
import type { Hono } from 'hono';
import { onTestFinished } from 'vitest';

/** Serves an application over a real socket for one test; answers its URL. */
export async function served(app: Hono | Express): Promise<string> {
  const server =
    'fetch' in app
      ? (serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server)
      : createServer(app).listen(0, '127.0.0.1');
  if (!server.listening) await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A promise with its ends. */
export function latch<T = void>(): { readonly promise: Promise<T>; readonly open: (value: T) => void } {
  let open: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}
