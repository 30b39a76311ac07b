import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import type { WritClient } from '../clients/common/connect.js';
import { toDuration } from '../clients/common/time.js';
import { kindName } from '../clients/runner/errors.js';
import { RunState } from '../gen/writ/v1/run_service.js';
import { Access, type Lease, type LeaseEntry, LeaseState, Scope } from '../gen/writ/v1/types.js';
import type { ChangeConfig, ChangeName, HeaderTemplates, RehearsalConfig, ResourceConfig } from './config.js';
import { Undecided } from './result.js';
import { type Answer, isAccepted, type Snapshot, shown, type Target } from './target.js';
import { fillText, placesIn, placesInJson, UnfilledPlace, type Values } from './template.js';

/** What a run holds at the moment. */
interface Held {
  readonly lease: Lease;
  readonly entry: LeaseEntry;
  readonly credential: string | undefined;
}

/** How one write is to differ from an ordinary one. */
export interface WriteOptions {
  readonly key?: string;
  /** Headers besides, such as a hook. */
  readonly headers?: HeaderTemplates;
  /** Headers that name one of these places are left out. */
  readonly without?: readonly string[];
  /** Instead of what the run is and holds. */
  readonly values?: Values;
  /** It takes as long as the suite keeps it standing, whatever requests may take. */
  readonly standsStill?: boolean;
}

export interface SentWrite extends Answer {
  readonly requestId: string;
  readonly key: string;
}

/** What runs are made of. */
export interface Surroundings {
  readonly config: RehearsalConfig;
  readonly target: Target;
  /** As a principal with the role `runner`. */
  readonly runner: WritClient;
  /** Of leases; undefined: as the conflict map says. */
  readonly ttlMs: number | undefined;
  /** Tells the story of the case. */
  readonly say: (step: string) => void;
  /** Throws when the case was given up, so that nothing of it goes on while the next one is played. */
  readonly goOn: () => void;
}

const ACQUIRE_WAIT_MS = 30_000;
const COMMAND_TIMEOUT_MS = 10_000;
const STANDSTILL_MS = 60_000;
const SHORT_TTL_MS = 1_000;
/** A credential ends some seconds before its lease, so that a shorter lease has none. */
const SHORT_TTL_WITH_CREDENTIAL_MS = 20_000;
const AUTHORITY_SECONDS = 3_600n;

/** A run of the rehearsal, with what it holds, as the service under rehearsal meets it. */
export class RehearsalRun {
  private held: Held | undefined;
  /** Of the acquire of what it holds: by it the log ties lease and run to what the suite did. */
  acquiredBy = '';

  private constructor(
    readonly name: string,
    readonly runId: string,
    private readonly resource: ResourceConfig,
    private readonly around: Surroundings,
  ) {}

  static async create(name: string, resource: ResourceConfig, around: Surroundings): Promise<RehearsalRun> {
    const { resource: pattern, action, elsewhere, changes } = resource;
    const allowed = [
      { pattern, actions: [action] },
      ...(changes.add?.action === undefined ? [] : [{ pattern, actions: [changes.add.action] }]),
      ...(elsewhere === undefined ? [] : [{ pattern: elsewhere.resource, actions: [elsewhere.action] }]),
    ];
    const seconds = BigInt(Math.floor(Date.now() / 1_000)) + AUTHORITY_SECONDS;
    const { run } = await around.runner.run.createRun({
      purpose: `rehearsal of ${around.config.target.name}: ${name}`,
      allowed: merged(allowed),
      authorityEndsAt: { seconds, nanos: 0 },
    });
    if (run === undefined) throw new Undecided('the coordinator made no run');
    return new RehearsalRun(name, run.runId, resource, around);
  }

  /** Whether what it holds keeps other runs away. */
  get isAlone(): boolean {
    return this.required.entry.exclusive;
  }

  get leaseId(): string {
    return this.required.lease.leaseId;
  }

  get credential(): string | undefined {
    return this.required.credential;
  }

  private get required(): Held {
    if (this.held === undefined) throw new Undecided(`${this.name} holds nothing`);
    return this.held;
  }

  /**
   * Acquires the resource of the rehearsal, waiting for what another run still holds, and opens it at the service if the
   * configuration says how. `ttlMs`: default of the conflict map; `to`: for this change, which may have an action of its own.
   */
  async hold(
    options: { ttlMs?: number; of?: { resource: string; action: string }; to?: ChangeName; open?: boolean } = {},
  ): Promise<void> {
    const { resource, action } = options.of ?? {
      resource: this.resource.resource,
      action: (options.to === 'add' ? this.resource.changes.add?.action : undefined) ?? this.resource.action,
    };
    this.around.goOn();
    this.acquiredBy = `rehearsal-${randomUUID()}`;
    const held = await this.acquire(resource, action, options.ttlMs ?? this.around.ttlMs);
    const entry = held.lease.entries.find((one) => one.resource === resource) ?? held.lease.entries[0];
    if (entry === undefined) throw new Undecided(`the lease on ${resource} has no entry`);
    if (entry.observedRefusal !== undefined)
      throw new Undecided(`${resource} is of a kind that is only observed, so that nothing is refused there`);
    this.held = { ...held, entry };
    this.around.say(`${this.name} holds ${resource}${entry.exclusive ? ', alone' : ', optimistically'}`);
    if (options.open !== false && options.of === undefined && entry.exclusive) await this.open();
  }

  /** The new holder's first act, where there is one. Throws Undecided when the service refuses it. */
  async open(): Promise<void> {
    const { open } = this.resource;
    if (open === undefined) return;
    const { body, path, method } = open;
    const request = { method, path, headers: { ...this.headers, ...open.headers }, body, requestId: randomUUID() };
    const answer = await this.around.target.send(request, this.values());
    if (!isAccepted(answer)) throw new Undecided(`${this.name} may not open what it holds: ${shown(answer)}`);
    this.around.say(`${this.name} opened it: ${shown(answer)}`);
  }

  async letGo(): Promise<void> {
    const { held } = this;
    this.held = undefined;
    if (held === undefined) return;
    const lease = { $case: 'leaseId' as const, value: held.lease.leaseId };
    await this.around.runner.lease.releaseLease({ runId: this.runId, lease });
    this.around.say(`${this.name} gave it back`);
  }

  /** What it presents of what it holds: for somebody else to borrow, or to be presented when it is over. */
  presented(): Values {
    const { lease, entry, credential } = this.required;
    return { lease: lease.leaseId, token: entry.fencingToken.toString(), credential };
  }

  async read(): Promise<Snapshot> {
    this.around.goOn();
    const snapshot = await this.around.target.read(this.resource, this.headers, this.values());
    this.around.say(`${this.name} read version ${String(snapshot.version)}`);
    return snapshot;
  }

  /** Sends a change that is based on what was read. */
  async write(name: ChangeName, from: Snapshot, options: WriteOptions = {}): Promise<SentWrite> {
    this.around.goOn();
    const change = changeOf(this.resource, name);
    const key = options.key ?? randomUUID();
    const requestId = `rehearsal-${randomUUID()}`;
    const { etag, version, content } = from;
    const values = {
      ...this.values(),
      etag,
      version,
      content,
      idempotency_key: key,
      unique: key.slice(0, 8),
      ...options.values,
    };
    const headers = without({ ...this.headers, ...change.headers, ...options.headers }, options.without ?? []);
    const request = { method: change.method, path: change.path, headers, body: change.body, requestId };
    try {
      const patience = options.standsStill === true ? { timeoutMs: STANDSTILL_MS } : {};
      const answer = await this.around.target.send(request, { ...values, request_id: requestId }, patience);
      this.around.say(`${this.name} wrote ${inWords(name)} from version ${String(version)}: ${shown(answer)}`);
      return { ...answer, requestId, key };
    } catch (error) {
      throw error instanceof UnfilledPlace ? new Undecided(`the change ${name}: ${error.message}`) : error;
    }
  }

  /** The service's own record of a request (W6). */
  async ask(record: NonNullable<RehearsalConfig['own_record']>, requestId: string): Promise<Answer> {
    const headers = { ...this.headers, ...record.headers };
    const request = { method: 'GET', path: record.path, headers, body: undefined, requestId: randomUUID() };
    return this.around.target.send(request, { ...this.values(), request_id: requestId });
  }

  async finish(): Promise<void> {
    await this.letGo();
    await this.around.runner.run.updateRunState({
      runId: this.runId,
      state: RunState.RUN_STATE_FINISHED,
      reason: 'the rehearsal is over',
    });
  }

  private async acquire(
    resource: string,
    action: string,
    ttlMs: number | undefined,
  ): Promise<{ lease: Lease; credential: string | undefined }> {
    const { audience } = this.around.config.runs;
    const idempotencyKey = randomUUID();
    const until = performance.now() + ACQUIRE_WAIT_MS;
    while (performance.now() < until) {
      const { outcome, credentials } = await this.around.runner.lease.acquireWriteSet({
        runId: this.runId,
        entries: [{ resource, access: Access.ACCESS_WRITE, scope: Scope.SCOPE_EXACT, actions: [action] }],
        wait: toDuration(ACQUIRE_WAIT_MS),
        ...(ttlMs === undefined ? {} : { ttl: toDuration(ttlMs) }),
        idempotencyKey,
        purpose: 'a rehearsal',
        requestId: this.acquiredBy,
        audiences: audience === undefined ? [] : [audience],
      });
      if (outcome?.$case === 'refusal')
        throw new Undecided(
          `${this.name} is refused ${resource}: ${kindName(outcome.value.kind)}: ${outcome.value.message}`,
        );
      if (outcome?.$case !== 'lease') continue;
      if (outcome.value.state !== LeaseState.LEASE_STATE_ACTIVE) break;
      return { lease: outcome.value, credential: credentialOf(credentials, audience) };
    }
    throw new Undecided(
      `${this.name} did not get ${resource} within ${ACQUIRE_WAIT_MS / 1_000} s: another run holds it`,
    );
  }

  private get headers(): HeaderTemplates {
    return this.around.config.runs.headers;
  }

  private secret: string | undefined;

  /** What its templates are filled with; looked up once. */
  async prepare(): Promise<void> {
    const { secret } = this.around.config.runs;
    if (secret === undefined) return;
    this.secret = 'value' in secret ? secret.value : await outputOf(secret.command, { run_id: this.runId });
  }

  private values(): Values {
    const { held } = this;
    const ids = { run_id: this.runId, secret: this.secret, unique: randomUUID().slice(0, 8), request_id: '-' };
    if (held === undefined) return { ...ids, lease: '-', token: '0', credential: '-' };
    const { lease, entry, credential } = held;
    return { ...ids, lease: lease.leaseId, token: entry.fencingToken.toString(), credential };
  }
}

/** Of a lease that is to expire soon. */
export function shortTtlMs({ runs }: RehearsalConfig): number {
  return runs.short_ttl ?? (runs.audience === undefined ? SHORT_TTL_MS : SHORT_TTL_WITH_CREDENTIAL_MS);
}

/** A change with what it says, and what writes have in common. */
function changeOf({ write, changes }: ResourceConfig, name: ChangeName) {
  const change: ChangeConfig = changes[name] ?? (name === 'late' ? changes.a : {});
  return {
    method: change.method ?? write.method,
    path: change.path ?? write.path,
    headers: { ...write.headers, ...change.headers },
    body: change.body,
  };
}

/** Whether a change says such a thing anywhere. */
export function says(resource: ResourceConfig, name: ChangeName, ...places: readonly string[]): boolean {
  return placesInJson(changeOf(resource, name)).some(({ names }) => names.some((one) => places.includes(one)));
}

function without(headers: HeaderTemplates, places: readonly string[]): HeaderTemplates {
  if (places.length === 0) return headers;
  const kept = Object.entries(headers).filter(
    ([, text]) => !placesIn(text ?? '').some((name) => places.includes(name)),
  );
  return Object.fromEntries(kept);
}

function inWords(name: ChangeName): string {
  if (name === 'replace') return 'the whole';
  return name === 'add' ? 'one more member' : `change ${name}`;
}

/** One allowance for each pattern. */
function merged(allowed: readonly { pattern: string; actions: string[] }[]): { pattern: string; actions: string[] }[] {
  const byPattern = new Map<string, Set<string>>();
  for (const { pattern, actions } of allowed)
    byPattern.set(pattern, new Set([...(byPattern.get(pattern) ?? []), ...actions]));
  return [...byPattern].map(([pattern, actions]) => ({ pattern, actions: [...actions] }));
}

function credentialOf(
  credentials: readonly { outcome?: { $case: string; value: unknown } | undefined }[],
  audience: string | undefined,
): string | undefined {
  if (audience === undefined) return undefined;
  const outcome = credentials[0]?.outcome;
  if (outcome?.$case === 'credential') return (outcome.value as { token: string }).token;
  const refusal = outcome?.value as { message?: string } | undefined;
  throw new Undecided(`there is no credential for ${audience}: ${refusal?.message ?? 'the coordinator gave none'}`);
}

const runFile = promisify(execFile);

/** What a command of the configuration prints; its standard error is not ours to show. */
export async function outputOf(command: readonly string[], values: Values): Promise<string> {
  const [file = '', ...args] = command.map((part) => fillText(part, values));
  try {
    const { stdout } = await runFile(file, args, { timeout: COMMAND_TIMEOUT_MS, maxBuffer: 1 << 20 });
    return stdout.trim();
  } catch (error) {
    const { code, killed } = error as { code?: unknown; killed?: boolean };
    throw new Undecided(`the command ${file} ${killed === true ? 'took too long' : `failed (${String(code)})`}`);
  }
}
