import { PROBLEM_CONTENT_TYPE, type Problem, type ProblemInit, problem } from './problem.js';

/**
 * A refusal on its way out: whoever answers the request sends the problem. A handler that throws it says that **nothing
 * was done**; what it had changed in its transaction is rolled back.
 */
export class ProblemError extends Error {
  override readonly name: string = 'ProblemError';
  readonly problem: Problem;

  constructor(init: ProblemInit, options?: ErrorOptions) {
    super(init.detail, options);
    this.problem = problem(init);
  }
}

/** An answer of a target to a request, whatever framework it has. */
export interface Answer {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const TEXT = new TextEncoder();

/** The problem as an answer: its own content type, Retry-After where it says how long to wait. */
export function problemAnswer(of: Problem): Answer {
  return {
    status: of.status,
    headers: {
      'content-type': PROBLEM_CONTENT_TYPE,
      ...(of.retry_after === undefined ? {} : { 'retry-after': String(of.retry_after) }),
    },
    body: TEXT.encode(JSON.stringify(of)),
  };
}

/** An answer in the terms of fetch, which hono speaks; with other headers than its own, if given. */
export function responseOf(answer: Answer, headers: Headers | Answer['headers'] = answer.headers): Response {
  const { status, body } = answer;
  // Statuses that have no body: fetch refuses even an empty one.
  const bodiless = status === 204 || status === 205 || status === 304;
  return new Response(bodiless ? null : (body as Uint8Array<ArrayBuffer>), { status, headers });
}
