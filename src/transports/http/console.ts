import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Context, Env, Hono } from 'hono';
import { problem } from './problem.js';

/**
 * The web console: files that `npm run build` has made, open to everybody, since they hold nothing but code. What they
 * show comes over the API, by whoever is signed in.
 *
 * The page comes at the console's own paths only, so that a wrong address is told as such. Assets have a digest of their
 * content in their names and never change; the page names them, and is asked for each time.
 */

/** Of both the source and what is built from it. */
const BUILT = fileURLToPath(new URL('../../../dist/console/', import.meta.url));

/** Paths at which the console has a screen. */
const PAGES = [
  '/',
  '/live',
  '/map',
  '/runs',
  '/runs/:id',
  '/leases/:id',
  '/resource',
  '/log',
  '/keys',
  '/reasons',
] as const;

/**
 * Scripts and styles of our own only, none of them inline; nothing from elsewhere, nothing in a frame, and no string ever
 * becomes markup.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const SECURITY_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

const FOR_EVER = 'public, max-age=31536000, immutable';
const ASK_EACH_TIME = 'no-cache';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** A file as it is served. */
interface ServedFile {
  readonly type: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzipped: Uint8Array<ArrayBuffer>;
}

interface Console {
  readonly page: ServedFile;
  readonly assets: ReadonlyMap<string, ServedFile>;
}

/** Serves the console from a directory; they are a megabyte at most, and are kept in memory from the first request on. */
export function mountConsole<E extends Env>(app: Hono<E>, directory: string = BUILT): void {
  let loaded: Console | null = null;
  const files = (): Console | null => {
    loaded ??= load(directory);
    return loaded;
  };
  app.on('GET', [...PAGES], (c) => {
    const built = files();
    return built === null ? notBuilt(c) : answer(c, built.page, ASK_EACH_TIME);
  });
  app.get('/assets/:name', (c) => {
    const built = files();
    if (built === null) return notBuilt(c);
    const file = built.assets.get(c.req.param('name'));
    if (file !== undefined) return answer(c, file, FOR_EVER);
    return problem(c, 404, 'NOT_FOUND', 'the console has no such file; it was updated: load the page again');
  });
}

function load(directory: string): Console | null {
  const page = join(directory, 'index.html');
  const assets = join(directory, 'assets');
  if (!existsSync(page) || !existsSync(assets)) return null;
  return {
    page: serve(page),
    assets: new Map(readdirSync(assets).map((name) => [name, serve(join(assets, name))])),
  };
}

function serve(path: string): ServedFile {
  const plain = new Uint8Array(readFileSync(path));
  return {
    type: TYPES[extname(path)] ?? 'application/octet-stream',
    plain,
    gzipped: new Uint8Array(gzipSync(plain)),
  };
}

function answer(c: Context, file: ServedFile, caching: string): Response {
  const zipped = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '');
  return c.body(zipped ? file.gzipped : file.plain, 200, {
    ...SECURITY_HEADERS,
    'cache-control': caching,
    'content-type': file.type,
    vary: 'accept-encoding',
    ...(zipped && { 'content-encoding': 'gzip' }),
  });
}

const notBuilt = (c: Context): Response =>
  problem(
    c,
    503,
    'CONSOLE_NOT_BUILT',
    'the web console was not built: `npm run build` makes it. The API is served all the same.',
  );
