import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { WritClient } from '../clients/common/connect.js';
import type { ChangeName, RehearsalConfig, ResourceConfig } from './config.js';
import { readPointer } from './json-pointer.js';
import type { PauseServer } from './pause-server.js';
import { Breach, NotApplicable, Undecided } from './result.js';
import { outputOf, type RehearsalRun, type SentWrite, type WriteOptions } from './run.js';
import type { StandIn } from './stand-in.js';
import { type Answer, isAccepted, type Snapshot, shown, type Target } from './target.js';

/** Where one case is played: one resource of the service, and the runs that meet there. */
export interface Stage {
  readonly config: RehearsalConfig;
  readonly resource: ResourceConfig;
  readonly target: Target;
  readonly a: RehearsalRun;
  readonly b: RehearsalRun;
  /** One that is stopped in the end. */
  readonly c: RehearsalRun;
  /** As a principal with the role `operator`, which stops runs and reads the log. */
  readonly operator: WritClient;
  /** Targets of the kind decide without asking, by credentials or by a view (`validation: local` and `view`). */
  readonly decidesAlone: boolean;
  readonly proxy: StandIn | undefined;
  readonly pauses: PauseServer | undefined;
  readonly say: (step: string) => void;
}

/** A case of the suite. */
export interface Case {
  /** Stable. */
  readonly name: string;
  readonly title: string;
  readonly proves: readonly string[];
  /** Throws Breach, NotApplicable or Undecided; returning is passing. */
  readonly play: (stage: Stage) => Promise<void>;
}

/** What a write that is too late, or never had the right, may be answered with: a refusal that is no fault. */
export function expectRefused(answer: Answer, what: string): void {
  if (isAccepted(answer)) throw new Breach(`${what} was accepted (${shown(answer)})`);
  if (answer.status >= 500)
    throw new Breach(`${what} was answered like a fault of the service (${shown(answer)}), not refused`);
  if (answer.status < 400) throw new Breach(`${what} was neither accepted nor refused (${shown(answer)})`);
}

/** Stale, in a word that a run can act on: 409 or 412. */
export function expectStale(answer: Answer, what: string): void {
  expectRefused(answer, what);
  if (answer.status !== 409 && answer.status !== 412)
    throw new Breach(
      `${what} was refused with ${shown(answer)}: stale is 412 (or 409), so that a run knows to read again`,
    );
}

/** Nothing has moved since. */
export async function expectUnchanged(reader: RehearsalRun, since: Snapshot, what: string): Promise<void> {
  const now = await reader.read();
  if (sameState(now, since)) return;
  const versions = `version ${String(since.version)} became ${String(now.version)}`;
  throw new Breach(`${what} changed the resource all the same: ${versions}`);
}

function sameState(a: Snapshot, b: Snapshot): boolean {
  return isDeepStrictEqual(a.version, b.version) && isDeepStrictEqual(a.content, b.content);
}

/** A change that is in order, and after which the resource is another: what the case rests on. */
export async function changeInOrder(
  run: RehearsalRun,
  name: ChangeName,
  from: Snapshot,
  options: WriteOptions = {},
): Promise<{ readonly answer: SentWrite; readonly after: Snapshot }> {
  const answer = await run.write(name, from, options);
  if (!isAccepted(answer))
    throw new Undecided(
      `a write that is in order (${name}, by ${run.name}, on the current version) was refused: ${shown(answer)}`,
    );
  const after = await run.read();
  if (sameState(after, from))
    throw new Undecided(
      `the change ${name} was accepted, and what is read is as before; a change must change something`,
    );
  return { answer, after };
}

/**
 * A reads; then B makes a change. Where the action needs its lease to be alone, they hold it one after the other, and A
 * holds it anew in the end, with what it has read before: a current lease, and an old version.
 */
export async function overtaken(
  { a, b, resource }: Stage,
  change: ChangeName = 'b',
  options: WriteOptions = {},
): Promise<{ readonly readByA: Snapshot; readonly afterB: Snapshot; readonly byB: SentWrite }> {
  await a.hold();
  const readByA = await a.read();
  const ofAnotherAction = change === 'add' && resource.changes.add?.action !== undefined;
  const oneAfterTheOther = a.isAlone || ofAnotherAction;
  if (oneAfterTheOther) await a.letGo();
  await b.hold({ to: change });
  const { answer, after } = await changeInOrder(b, change, await b.read(), options);
  if (oneAfterTheOther) {
    await b.letGo();
    await a.hold();
  }
  return { readByA, afterB: after, byB: answer };
}

/**
 * Takes the coordinator away from the service, for the time of `work`. Comes after a write that had to be asked about:
 * a service that asks past the proxy is not cut off by it, and what it does then proves nothing.
 */
export async function withoutCoordinator(stage: Stage, work: () => Promise<void>): Promise<void> {
  const { unreachable, reachable } = stage.config.coordinator;
  if (stage.proxy === undefined && (unreachable === undefined || reachable === undefined))
    throw new NotApplicable(
      'the suite cannot take the coordinator away: configure coordinator.proxy or http_proxy, or commands for unreachable and reachable',
    );
  if (unreachable === undefined) expectAskedThroughProxy(stage);
  stage.say('the service cannot reach the coordinator now');
  try {
    if (unreachable !== undefined) await outputOf(unreachable.command, {});
    else await stage.proxy?.cut();
    await work();
  } finally {
    if (reachable !== undefined) await outputOf(reachable.command, {});
    else await stage.proxy?.mend();
    stage.say('the service can reach the coordinator again');
  }
}

/** Lets the coordinator say nothing to the service, for the time of `work`; where only commands take it away, nothing is done. */
export async function withSilentCoordinator(stage: Stage, work: () => Promise<void>): Promise<void> {
  const { proxy, say } = stage;
  if (proxy === undefined) {
    say('a coordinator that says nothing was not tried (coordinator.proxy, http_proxy)');
    return;
  }
  expectAskedThroughProxy(stage);
  proxy.hush();
  say('the service hears nothing from the coordinator now');
  try {
    await work();
  } finally {
    await proxy.mend();
    say('the service hears the coordinator again');
  }
}

/** How long a service may take until it has found the coordinator again. */
export const BACK_MS = 20_000;
const LOOK_EVERY_MS = 200;

/** What is there when the coordinator is back: a service, or its gateway, connects again in its own time. */
export async function readWhenBack(run: RehearsalRun): Promise<Snapshot> {
  const until = performance.now() + BACK_MS;
  for (;;) {
    try {
      return await run.read();
    } catch (error) {
      if (!(error instanceof Undecided) || performance.now() > until) throw error;
    }
    await pause(LOOK_EVERY_MS);
  }
}

function expectAskedThroughProxy({ proxy, decidesAlone }: Stage): void {
  // A target of a local kind need not ask anybody.
  if (proxy === undefined || proxy.wasAsked || decidesAlone) return;
  throw new Undecided(
    `the service never asked the coordinator through the suite's proxy, so that cutting the proxy takes nothing away: ${proxy.howToAsk}, or it asks nobody`,
  );
}

/** Whether the configured change demands to be sent with a key (W2). */
export function requireKey(stage: Stage): void {
  if (!saysAnywhere(stage, 'idempotency_key'))
    throw new NotApplicable('no write of the configuration sends an {idempotency_key}');
}

function saysAnywhere({ resource }: Stage, place: string): boolean {
  return JSON.stringify([resource.write, resource.changes]).includes(`{${place}`);
}

/** What a refusal says to a machine, at the places that the configuration names. */
export function problemOf(stage: Stage, answer: Answer) {
  const { problem } = stage.config;
  const at = (pointer: string) => readPointer(answer.json, pointer);
  return {
    retryable: at(problem.retryable),
    next: at(problem.next),
    resolver: at(problem.resolver),
    expected: at(problem.expected),
    current: at(problem.current),
  };
}
