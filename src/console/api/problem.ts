/** What a call came to that gave no answer: as RFC 9457 has it, or made here when nothing came back. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

export class Problem extends Error {
  constructor(
    /** 0: no answer came. */
    readonly status: number,
    /** The stable code; docs/reason-codes.md says what it means and what to do. */
    readonly reason: string,
    readonly detail: string,
    readonly violations: readonly Violation[] = [],
    /** Further members of the document. */
    readonly more: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail);
  }

  /** The same call can be answered later, without anybody changing anything. */
  get mayPass(): boolean {
    return this.status === 0 || this.status >= 500;
  }

  /** Nobody is signed in, or is any more. */
  get isSignedOut(): boolean {
    return this.status === 401;
  }
}

/** The problem that an answer tells; whatever it is, it is told in words. */
export async function problemOf(response: Response): Promise<Problem> {
  const body = await response.json().catch(() => null);
  if (typeof body !== 'object' || body === null || typeof body.reason !== 'string') {
    const told = `Something answered ${response.status} that is not the coordinator: a proxy, perhaps.`;
    return new Problem(response.status, 'FOREIGN_ANSWER', told);
  }
  const { reason, detail, violations, ...more } = body as Record<string, unknown>;
  return new Problem(
    response.status,
    String(reason),
    typeof detail === 'string' ? detail : '',
    Array.isArray(violations) ? violations.filter(isViolation) : [],
    more,
  );
}

function isViolation(value: unknown): value is Violation {
  const { field, description } = (value ?? {}) as Record<string, unknown>;
  return typeof field === 'string' && typeof description === 'string';
}

/** Whatever was thrown, as a problem that can be shown. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(
    0,
    'NO_ANSWER',
    'No answer came from the coordinator. Whether the call was carried out is not known; look again before you repeat it.',
  );
}
