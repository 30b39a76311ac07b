import { join } from 'node:path';
import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { mountConsole } from '../../src/transports/http/console.js';
import { makeTestDirectory } from '../support/global-setup.js';

/** What `npm run build` has made, as the coordinator serves it. */
function built(directory?: string): Hono {
  const app = new Hono();
  mountConsole(app, directory);
  app.notFound((c) => c.text('elsewhere', 404));
  return app;
}

const assetsOf = (page: string): string[] =>
  [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);

describe('the console is served', () => {
  it('at its own paths and at no other', async () => {
    const app = built();
    for (const path of [
      '/',
      '/live',
      '/map',
      '/runs',
      '/runs/0123',
      '/leases/4567',
      '/resource?name=a',
      '/log',
      '/keys',
    ]) {
      const page = await app.request(path);
      expect(page.status, path).toBe(200);
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(page.headers.get('cache-control')).toBe('no-cache');
    }
    for (const path of [
      '/index.html',
      '/runs/a/b',
      '/lives',
      '/v1/leases',
      '/assets/../index.html',
      '/assets/none.js',
    ]) {
      expect((await app.request(path)).status, path).toBe(404);
    }
    expect((await app.request('/live', { method: 'POST' })).status).toBe(404);
  });

  it('with files that never change under their names, zipped for who takes it', async () => {
    const app = built();
    const assets = assetsOf(await (await app.request('/')).text());
    expect(assets.some((path) => path.endsWith('.js'))).toBe(true);
    expect(assets.some((path) => path.endsWith('.css'))).toBe(true);
    for (const path of assets) {
      const plain = await app.request(path);
      expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      const zipped = await app.request(path, { headers: { 'accept-encoding': 'br, gzip' } });
      expect(zipped.headers.get('content-encoding')).toBe('gzip');
      expect(zipped.headers.get('content-type')).toBe(plain.headers.get('content-type'));
    }
  });

  it('under a policy that knows no inline code, no other origin and no frame; and the page keeps to it', async () => {
    const answer = await built().request('/');
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    const page = await answer.text();
    expect(page).not.toMatch(/<style|\sstyle=|\son[a-z]+=|https?:\/\//);
    expect(page).not.toMatch(/<script(?![^>]*\ssrc=)/);
  });

  it('says what to do where it was not built', async () => {
    const answer = await built(join(await makeTestDirectory('console'), 'none')).request('/');
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({
      reason: 'CONSOLE_NOT_BUILT',
      detail: expect.stringContaining('npm run build'),
    });
  });
});
