import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { HeaderTemplates, RehearsalConfig, ResourceConfig } from './config.js';
import { readPointer } from './json-pointer.js';
import { Undecided } from './result.js';
import { fillJson, fillText, type Values } from './template.js';

/** The service under rehearsal, as anybody sees it: over HTTP. */

/** What a request was answered with. */
export interface Answer {
  readonly status: number;
  readonly etag: string | null;
  readonly contentType: string;
  /** The body where it is JSON, else undefined. */
  readonly json: unknown;
  readonly text: string;
}

/** A resource as it was read. */
export interface Snapshot {
  /** As a precondition names it; of an ETag without its quotes. */
  readonly version: unknown;
  readonly etag: string | null;
  readonly content: unknown;
}

export interface TargetRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: HeaderTemplates;
  /** Undefined: no body. */
  readonly body: unknown;
  readonly requestId: string;
}

/** Of an answer; what is longer is no answer of a write path. */
const MAX_BODY_BYTES = 1_048_576;

/** A service may be on its way up when it is rehearsed: it is looked for as long as this. */
const APPEARS_WITHIN_MS = 3_000;
const LOOK_EVERY_MS = 100;

/** Nothing answers at the address of the service, so there is nothing to rehearse. */
export class TargetUnreachableError extends Error {
  override readonly name = 'TargetUnreachableError';
}

export class Target {
  constructor(
    private readonly url: string,
    private readonly config: RehearsalConfig['target'],
  ) {}

  /** Sends a request whose templates are filled from `values`; throws Undecided when there is no answer in time. */
  async send(request: TargetRequest, values: Values, options: { readonly timeoutMs?: number } = {}): Promise<Answer> {
    const path = fillText(request.path, values, encodeURIComponent);
    const headers = new Headers({ accept: 'application/json', 'x-request-id': request.requestId });
    for (const [name, text] of Object.entries({ ...this.config.headers, ...request.headers }))
      if (text !== null) headers.set(name, fillText(text, values));
    const body = request.body === undefined ? undefined : JSON.stringify(fillJson(request.body, values));
    if (body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json');
    try {
      const answer = await fetch(`${this.url}${path}`, {
        method: request.method,
        headers,
        redirect: 'manual',
        signal: AbortSignal.timeout(options.timeoutMs ?? this.config.timeout),
        ...(body === undefined ? {} : { body }),
      });
      return toAnswer(answer, await readBounded(answer));
    } catch (error) {
      if (error instanceof Undecided) throw error;
      throw new Undecided(`${request.method} ${path} was not answered: ${reasonOf(error)}`);
    }
  }

  /** Throws TargetUnreachableError where nobody answers, whatever the answer says. */
  async reach(): Promise<void> {
    const until = performance.now() + APPEARS_WITHIN_MS;
    for (;;) {
      try {
        const answer = await fetch(this.url, { redirect: 'manual', signal: AbortSignal.timeout(this.config.timeout) });
        await answer.body?.cancel();
        return;
      } catch (error) {
        if (performance.now() > until) throw new TargetUnreachableError(`${this.url}: ${reasonOf(error)}`);
      }
      await pause(LOOK_EVERY_MS);
    }
  }

  async read({ read }: ResourceConfig, headers: HeaderTemplates, values: Values): Promise<Snapshot> {
    const request = {
      method: 'GET',
      path: read.path,
      headers: { ...headers, ...read.headers },
      body: undefined,
      requestId: randomUUID(),
    };
    const answer = await this.send(request, values);
    if (!isAccepted(answer)) throw new Undecided(`it cannot be read: ${shown(answer)}`);
    const content = answer.json === undefined ? answer.text : readPointer(answer.json, read.content);
    if (content === undefined)
      throw new Undecided(`what was read has nothing at ${read.content} (read.content): ${shown(answer)}`);
    const version = read.version === 'etag' ? bare(answer.etag) : readPointer(answer.json, read.version);
    if (version === undefined || version === null)
      throw new Undecided(
        `what was read has no version, which should be ${read.version === 'etag' ? 'its ETag' : `at ${read.version}`} (read.version)`,
      );
    return { version, etag: answer.etag, content };
  }
}

/** It was done, as far as the answer says. */
export function isAccepted({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

/** An answer in a few words. */
export function shown(answer: Answer): string {
  const code = readPointer(answer.json, '/code') ?? readPointer(answer.json, '/title');
  return typeof code === 'string' ? `${answer.status} ${code.slice(0, 80)}` : String(answer.status);
}

function toAnswer(answer: Response, text: string): Answer {
  const contentType = answer.headers.get('content-type') ?? '';
  return { status: answer.status, etag: answer.headers.get('etag'), contentType, json: parse(contentType, text), text };
}

function parse(contentType: string, text: string): unknown {
  if (!/[/+]json\b/i.test(contentType)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readBounded(answer: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of answer.body ?? []) {
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) throw new Undecided(`an answer has more than ${MAX_BODY_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** `41` of `"41"` and of `W/"41"`. */
function bare(etag: string | null): string | null {
  return etag === null ? null : (/^(?:W\/)?"(.*)"$/.exec(etag)?.[1] ?? etag);
}

function reasonOf(error: unknown): string {
  const { name, message, cause } = error as Error;
  if (name === 'TimeoutError') return 'it took too long (target.timeout)';
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}
