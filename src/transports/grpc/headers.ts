import { constants, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Server } from '@grpc/grpc-js';

/**
 * Headers, before grpc-js reads them. Node keeps the first of several `authorization` headers and says nothing; whoever
 * stands between (a proxy that adds one of its own) may have meant the other. And grpc-js computes timeouts in 32 bits,
 * so that some that are meant as "for ever" are over at once. Nor does it let go of a call that was answered before all of
 * it was sent, and whoever never ends their requests would hold as many as they like. All are only visible here, on the
 * HTTP/2 server that grpc-js keeps to itself: without it this throws, and nothing is served.
 */
export function mendHeaders(server: Server): void {
  const { http2Servers } = server as unknown as { readonly http2Servers: ReadonlyMap<Http2Server, unknown> };
  for (const http2 of http2Servers.keys()) http2.prependListener('stream', mend as never);
}

/** After the answer of a call that its caller has not ended. */
const LET_GO_AFTER_MS = 5_000;
/** Longer timers fire at once. */
const MAX_TIMER_SECONDS = Math.floor((2 ** 31 - 1) / 1000);
const SECONDS_PER_UNIT: Readonly<Record<string, number>> = { S: 1, M: 60, H: 3600 };
const LONG_TIMEOUT = /^(\d{1,8})([SMH])$/;

function mend(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  _flags: number,
  rawHeaders: readonly string[],
): void {
  stream.once('finish', () => letGo(stream));
  const authorizations = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1] === 'authorization');
  if (authorizations.length > 1) (headers as Record<string, string | string[]>).authorization = authorizations;
  const [, count, unit = ''] = LONG_TIMEOUT.exec(String(headers['grpc-timeout'])) ?? [];
  if (Number(count) * (SECONDS_PER_UNIT[unit] ?? 0) > MAX_TIMER_SECONDS)
    headers['grpc-timeout'] = `${MAX_TIMER_SECONDS}S`;
}

/**
 * The answer is complete, where it is one block of headers: what the caller may still send is wanted no more (RFC 9113,
 * 8.1). Where trailers end it they are still to be sent, and would be lost. Whoever is still sending gets the time to hear
 * the answer: closed at once, they would be told of a broken stream instead.
 */
function letGo(stream: ServerHttp2Stream): void {
  const isWhole = stream.sentHeaders?.['grpc-status'] !== undefined;
  if (isWhole && !stream.readableEnded)
    setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), LET_GO_AFTER_MS).unref();
}
