import { z } from 'zod';
import { CHANGE_CLASSES } from '../../route-table/index.js';

/** Longer texts of a target are cut, and larger answers not read: they are for a log line, not for a prompt. */
const MAX_TEXT = 1_024;
const MAX_PROBLEM_BYTES = 64 << 10;

const text = z.string().transform((given) => given.slice(0, MAX_TEXT));
const optionalText = text.optional().catch(undefined);

/** Members of a service's own, or of a wrong form, are passed over: what is missing is decided the careful way. */
const schema = z.object({
  code: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/),
  detail: text.catch(''),
  resource: optionalText,
  action: optionalText,
  expected_version: optionalText,
  current_version: optionalText,
  conflict_category: z.enum(CHANGE_CLASSES).optional().catch(undefined),
  retryable: z.boolean().catch(false),
  resolver: optionalText,
  next: optionalText,
  request_id: optionalText,
});

/** A refusal of a target as a run reads it (RFC 9457); the members are those that the target kit sends. */
export interface TargetProblem extends z.output<typeof schema> {
  readonly status: number;
  /** What the answer says in Retry-After, in seconds or as a date; undefined: nothing. */
  readonly retryAfterMs: number | undefined;
}

/** What a status without problem details is called. */
const CODE_OF_STATUS: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  409: 'conflict',
  412: 'version_conflict',
  422: 'idempotency_key_reused',
  428: 'precondition_required',
  429: 'rate_limited',
  503: 'unavailable',
};

/**
 * Reads the refusal out of a target's answer; undefined when it succeeded (2xx). What has no problem details, or
 * unreadable ones, is known by its status alone, and is nothing that a run retries by itself.
 *
 * @example
 * const problem = await readProblem(response);
 * if (problem?.code === 'stale_token') throw new Error(problem.detail);
 */
export async function readProblem(response: Response): Promise<TargetProblem | undefined> {
  const { status } = response;
  if (response.ok) return undefined;
  const retryAfterMs = retryAfter(response.headers.get('retry-after'));
  const parsed = schema.safeParse(await json(response));
  const unread = { code: CODE_OF_STATUS[status] ?? `http_${status}`, detail: '', retryable: false };
  return { ...(parsed.success ? parsed.data : unread), status, retryAfterMs };
}

async function json(response: Response): Promise<unknown> {
  if (!/^application\/problem\+json\b/i.test(response.headers.get('content-type') ?? '')) return undefined;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    // Leaving the loop cancels the rest.
    if (size > MAX_PROBLEM_BYTES) return undefined;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  if (/^\d{1,6}$/.test(header.trim())) return Number(header) * 1_000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}
