import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { checkFence, type FenceDecision, type WritClient } from '../../clients/target/index.js';
import type { Precondition, TargetStore } from './target-store.js';

/**
 * The HTTP side of the demo's target service: what any service does to take part. Its write paths are classified (W4),
 * every write carries the run's credential, its lease and token, and the version it has read; two gates are asked, the
 * guard in the service's own Postgres and the coordinator; and every refusal is a problem that a machine can act on.
 */

/** A write path: what it is called in the conflict map, and what happens when two runs meet there. */
interface WritePath {
  readonly action: string;
  /** The action needs its lease to be alone. */
  readonly exclusive: boolean;
  readonly conflict: { readonly category: string; readonly resolver: string; readonly next: string };
  readonly body: z.ZodType;
}

const WRITE_PATHS: Readonly<Record<string, WritePath>> = {
  'notification-policy': {
    action: 'change',
    exclusive: false,
    conflict: {
      category: 'shared_document',
      resolver: 'alerts-owner',
      next: 'Do not send this body again. Read the current version and decide anew whether your change is still needed; alerts-owner settles doubts.',
    },
    body: z.strictObject({
      destinations: z.array(z.string()).min(1),
      severity: z.enum(['info', 'warning', 'critical']),
    }),
  },
  release: {
    action: 'promote',
    exclusive: true,
    conflict: {
      category: 'shared_pointer',
      resolver: 'release-owner',
      next: 'Stop, and show release-owner both candidates.',
    },
    body: z.strictObject({ image: z.string().min(1) }),
  },
  migration: {
    action: 'write_rows',
    exclusive: true,
    conflict: {
      category: 'independent',
      resolver: 'agent',
      next: 'Read the row again, and write it only if it still needs your change.',
    },
    body: z.record(z.string(), z.string()),
  },
};

/**
 * The demo's stand-in for the identity that a platform gives each process: the run's id and a MAC of it. The service
 * believes this, and no header that names a run (I1).
 */
export function runSecret(key: string, runId: string): string {
  return `${runId}.${createHmac('sha256', key).update(runId).digest('base64url')}`;
}

function authenticateRun(key: string, authorization: string | undefined): string | null {
  const [, secret = '', runId = ''] = /^Bearer (([^.\s]+)\.\S+)$/.exec(authorization ?? '') ?? [];
  const [given, expected] = [Buffer.from(secret), Buffer.from(runSecret(key, runId))];
  return given.length === expected.length && timingSafeEqual(given, expected) ? runId : null;
}

/** What a protected request presents. */
interface Presented {
  readonly runId: string;
  readonly requestId: string;
  readonly leaseId: string;
  readonly token: bigint;
  readonly resource: string;
  readonly part: string;
  readonly path: WritePath;
}

/** RFC 9457, with members that a machine can act on. */
interface Problem {
  readonly status: 400 | 401 | 403 | 404 | 409 | 412 | 428 | 503;
  /** Stable. */
  readonly code: string;
  readonly detail: string;
  readonly [member: string]: unknown;
}

type Env = { Variables: { runId: string; requestId: string } };

export interface TargetAppOptions {
  readonly store: TargetStore;
  readonly writ: WritClient;
  /** Of the run secrets. */
  readonly runKey: string;
}

export function targetApp({ store, writ, runKey }: TargetAppOptions): Hono<Env> {
  const app = new Hono<Env>();
  app.use(async (c, next) => {
    const runId = authenticateRun(runKey, c.req.header('authorization'));
    if (runId === null) return problem(c, { status: 401, code: 'unauthenticated', detail: 'Present the run secret.' });
    c.set('runId', runId);
    c.set('requestId', c.req.header('x-request-id') ?? randomUUID());
    return next();
  });
  app.get('/requests/:requestId', async (c) => c.json(await store.recorded(c.req.param('requestId'))));
  app.post('/:kind/:id/open', (c) => open(c, store, writ));
  for (const path of ['/:kind/:id', '/:kind/:id/rows/:row'] as const) {
    app.get(path, (c) => read(c, store));
    app.put(path, (c) => write(c, store, writ));
  }
  app.notFound((c) => problem(c, { status: 404, code: 'not_found', detail: 'There is no such path.' }));
  return app;
}

async function read(c: Context<Env>, store: TargetStore): Promise<Response> {
  const { resource, part } = addressed(c);
  const found = await store.read(resource, part);
  if (found === null) {
    return problem(c, { status: 404, code: 'not_found', detail: `${resource} has no ${part || 'content'}.`, resource });
  }
  c.header('etag', `"${found.version}"`);
  return c.json({ version: found.version, body: found.body, changed_by: found.changedBy });
}

/** A new holder's first act: raises the guard's mark, so that a delayed write of an older one is refused (C7). */
async function open(c: Context<Env>, store: TargetStore, writ: WritClient): Promise<Response> {
  const asked = presented(c);
  if ('code' in asked) return problem(c, asked);
  const { resource, token, runId, path } = asked;
  const decision = await ask(writ, asked, null);
  const guard = decision.allowed ? await store.open({ resource, token, runId, action: path.action }) : 'not_asked';
  if (!decision.allowed || guard !== 'ok') return problem(c, fenceProblem(asked, guard, decision));
  return c.json({ resource, opened: true });
}

async function write(c: Context<Env>, store: TargetStore, writ: WritClient): Promise<Response> {
  const asked = presented(c);
  if ('code' in asked) return problem(c, asked);
  const precondition = preconditionOf(c, asked);
  if ('code' in precondition) return problem(c, precondition);
  const body = asked.path.body.safeParse(await c.req.json().catch(() => undefined));
  if (!body.success) {
    const detail = `The body is not accepted: ${body.error.issues[0]?.message ?? ''}`;
    return problem(c, { status: 400, code: 'invalid_body', detail, resource: asked.resource });
  }
  let decision: FenceDecision | undefined;
  const request = {
    ...asked,
    action: asked.path.action,
    exclusive: asked.path.exclusive,
    precondition,
    body: body.data,
  };
  const { guard, outcome } = await store.write(request, async () => {
    decision = await ask(writ, asked, precondition);
    return decision.allowed;
  });
  const refusal = refusalOf(asked, precondition, guard, decision, outcome);
  await store.record({
    ...asked,
    action: asked.path.action,
    precondition: JSON.stringify(precondition),
    status: refusal?.status ?? 200,
    code: refusal?.code ?? 'written',
    guard,
    coordinator: decision?.reason ?? 'not_asked',
    newVersion: outcome.kind === 'written' ? outcome.version : null,
  });
  if (refusal !== null) return problem(c, refusal);
  if (outcome.kind === 'written') c.header('etag', `"${outcome.version}"`);
  return c.json({ resource: asked.resource, version: outcome.kind === 'written' ? outcome.version : null });
}

function refusalOf(
  asked: Presented,
  precondition: Precondition,
  guard: string,
  decision: FenceDecision | undefined,
  outcome: Awaited<ReturnType<TargetStore['write']>>['outcome'],
): Problem | null {
  if (decision === undefined || !decision.allowed || guard !== 'ok') return fenceProblem(asked, guard, decision);
  return outcome.kind === 'conflict' ? conflictProblem(asked, precondition, outcome.currentVersion) : null;
}

/** A request waits for the verdict with the guard's lock held, so not for long. */
const CHECK_TIMEOUT_MS = 1_000;

function ask(writ: WritClient, asked: Presented, precondition: Precondition | null): Promise<FenceDecision> {
  const { leaseId, runId, requestId, resource, token, path } = asked;
  const observed =
    precondition !== null && 'version' in precondition ? { observedVersion: String(precondition.version) } : {};
  const writes = [{ resource, action: path.action, token, ...observed }];
  return checkFence(writ, { leaseId, presenterRunId: runId, requestId, writes }, { timeoutMs: CHECK_TIMEOUT_MS });
}

// ------------------------------------------------------------------------------------------------ reading a request

function addressed(c: Context<Env>): { readonly kind: string; readonly resource: string; readonly part: string } {
  const { kind = '', id = '', row } = c.req.param() as Record<string, string | undefined>;
  return { kind, resource: `${kind}/${id}`, part: row === undefined ? '' : `rows/${row}` };
}

function presented(c: Context<Env>): Presented | Problem {
  const { kind, resource, part } = addressed(c);
  const path = WRITE_PATHS[kind];
  if (path === undefined) {
    return {
      status: 403,
      code: 'unclassified',
      detail: `Writes to ${kind} are not classified, so nothing may write them unattended.`,
      resource,
    };
  }
  const leaseId = c.req.header('writ-lease') ?? '';
  const token = c.req.header('writ-fencing-token') ?? '';
  if (leaseId === '' || !/^[1-9]\d{0,18}$/.test(token)) {
    const detail = `A write to ${resource} needs a lease on it: present writ-lease and writ-fencing-token.`;
    return { status: 403, code: 'lease_required', detail, resource, action: path.action, retryable: false };
  }
  return { runId: c.get('runId'), requestId: c.get('requestId'), leaseId, token: BigInt(token), resource, part, path };
}

function preconditionOf(c: Context<Env>, asked: Presented): Precondition | Problem {
  const [, version] = /^"(\d{1,15})"$/.exec(c.req.header('if-match') ?? '') ?? [];
  if (version !== undefined) return { version: Number(version) };
  if (c.req.header('if-none-match') === '*') return { absent: true };
  return {
    status: 428,
    code: 'precondition_required',
    detail: `Say which version of ${asked.resource} you have read (If-Match), or that there is none yet (If-None-Match: *).`,
    resource: asked.resource,
    retryable: false,
  };
}

// ------------------------------------------------------------------------------------------------- saying no, usefully

/** Reasons that say the run never had the right, rather than that it has it no more. */
const NEVER_ALLOWED = new Set(['not_covered', 'action_not_allowed', 'wrong_holder', 'unknown_lease', 'not_granted']);

function fenceProblem(asked: Presented, guard: string, decision: FenceDecision | undefined): Problem {
  const coordinator = decision?.reason ?? 'not_asked';
  const guardRefuses = guard !== 'ok' && guard !== 'not_asked';
  const undecided = decision?.error !== undefined;
  const refusedBy = [...(guardRefuses ? ['guard'] : []), ...(decision?.allowed === true ? [] : ['coordinator'])];
  const about = {
    resource: asked.resource,
    action: asked.path.action,
    // Which gate said what: only these two can refuse a fence, and the coordinator refuses also by not answering.
    refused_by: refusedBy,
    guard: { reason: guard },
    coordinator: { reason: coordinator, message: decision?.message ?? '' },
    request_id: asked.requestId,
  };
  if (undecided && !guardRefuses) {
    const detail = `The coordinator cannot be asked about ${asked.resource}, so nothing is written.`;
    return {
      status: 503,
      code: 'fence_undecided',
      detail,
      ...about,
      retryable: true,
      next: 'Send the same request again later.',
    };
  }
  const never = !guardRefuses && NEVER_ALLOWED.has(coordinator);
  return {
    status: never ? 403 : 409,
    code: 'fence_refused',
    detail: guardRefuses
      ? `The guard refuses the token for ${asked.resource} (${guard}): a newer holder has been here.`
      : (decision?.message ?? ''),
    ...about,
    retryable: false,
    next: whatNext(never, guardRefuses ? '' : coordinator),
  };
}

/** Advice that its reader can take: a run that has ended gets no lease any more. */
function whatNext(never: boolean, coordinator: string): string {
  if (never) return 'Declare the resource: ask for a write set that contains it.';
  if (coordinator === 'run_stopped')
    return 'Stop working: an operator has ended this run, and it gets no new lease. Ask the operator before you begin a new run.';
  if (coordinator === 'run_ended')
    return 'Stop working: the run has ended, and gets no new lease. What is left to do needs a new run.';
  return 'Stop. Ask for a new lease, and read before you decide anew.';
}

function conflictProblem(asked: Presented, precondition: Precondition, currentVersion: number | null): Problem {
  const expected = 'version' in precondition ? String(precondition.version) : null;
  const { category, resolver, next } = asked.path.conflict;
  return {
    status: 412,
    code: 'version_conflict',
    detail: `${asked.resource} is at version ${currentVersion ?? 'none'}, and your change was made from ${expected ?? 'none'}. Nothing was changed.`,
    resource: asked.resource,
    action: asked.path.action,
    expected_version: expected,
    current_version: currentVersion === null ? null : String(currentVersion),
    conflict_category: category,
    retryable: false,
    resolver,
    next,
    request_id: asked.requestId,
  };
}

const TITLES: Readonly<Record<Problem['status'], string>> = {
  400: 'Bad request',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  409: 'No longer allowed',
  412: 'Version conflict',
  428: 'Precondition required',
  503: 'Cannot be decided now',
};

function problem(c: Context<Env>, { status, ...members }: Problem): Response {
  const body = { type: `urn:writ:problem:${members.code}`, title: TITLES[status], status, ...members };
  return c.body(JSON.stringify(body), status, { 'content-type': 'application/problem+json' });
}
