import { TLSSocket } from 'node:tls';
import { Fault } from '../../domain/fault.js';
import { isLoopback } from '../../platform/settings.js';
import type { RouteContext } from './route.js';

/** A request as browsers may have made it. */
export type BrowserContext = RouteContext;

/** Where the request says that it was sent to: its Host header, by the scheme of its connection; null: nowhere. */
export function addressedOrigin(c: BrowserContext): URL | null {
  const scheme = c.env.incoming.socket instanceof TLSSocket ? 'https' : 'http';
  const address = `${scheme}://${c.req.header('host') ?? ''}`;
  return URL.canParse(address) ? new URL(address) : null;
}

/**
 * Origins whose pages are ours: that of WRIT_CONSOLE_URL, and the address that the request was sent to, as long as there
 * is no other or it is this machine itself.
 */
function ownOrigins(c: BrowserContext, consoleUrl: string | null): readonly string[] {
  const addressed = addressedOrigin(c);
  const counts = addressed !== null && (consoleUrl === null || isLoopbackUrl(addressed));
  return [...(consoleUrl === null ? [] : [new URL(consoleUrl).origin]), ...(counts ? [addressed.origin] : [])];
}

export function isLoopbackUrl({ hostname }: URL): boolean {
  return isLoopback(hostname.replace(/^\[|\]$/g, ''));
}

/** Browsers say which page makes a request; throws a Fault when it is not one of ours. Other clients say nothing. */
export function refuseForeignPage(c: BrowserContext, consoleUrl: string | null): void {
  const origin = c.req.header('origin');
  const site = c.req.header('sec-fetch-site');
  const own = ownOrigins(c, consoleUrl);
  if (origin !== undefined && !own.includes(origin)) throw crossOrigin(`from ${printable(origin)}`, own);
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw crossOrigin(`from another origin`, own);
}

/** The same, and somebody must have said so. */
export function demandOwnPage(c: BrowserContext, consoleUrl: string | null): void {
  refuseForeignPage(c, consoleUrl);
  if (c.req.header('origin') === undefined) throw crossOrigin('without an Origin header', ownOrigins(c, consoleUrl));
}

function crossOrigin(how: string, own: readonly string[]): Fault {
  return new Fault(
    'permission_denied',
    'CROSS_ORIGIN',
    `the request came ${how}; the console is at ${own.join(' and ') || 'no address that is known'}. ` +
      'WRIT_CONSOLE_URL says where it is, where that is another address than browsers send to.',
  );
}

function printable(origin: string): string {
  return origin.slice(0, 256).replace(/[^\x21-\x7e]/g, '?');
}
