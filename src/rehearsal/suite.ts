import type { ChannelCredentials } from '@grpc/grpc-js';
import type { WritClient } from '../clients/common/connect.js';
import { Validation } from '../gen/writ/v1/types.js';
import { CASES } from './cases/index.js';
import { type RehearsalConfig, RehearsalConfigError, type ResourceConfig } from './config.js';
import { CoordinatorProxy } from './coordinator-proxy.js';
import { HttpCoordinatorProxy } from './http-proxy.js';
import { PauseServer } from './pause-server.js';
import {
  Breach,
  type CaseResult,
  hasPassed,
  NotApplicable,
  type Outcome,
  type ResourceResult,
  Undecided,
} from './result.js';
import { RehearsalRun, shortTtlMs } from './run.js';
import type { Case, Stage } from './stage.js';
import type { StandIn } from './stand-in.js';
import { foldRepeats } from './steps.js';
import { isAccepted, shown, Target } from './target.js';
import { UnfilledPlace } from './template.js';

/** Raised with every change of what a case demands: a result says which suite it is of. */
export const SUITE_VERSION = '2';

export interface SuiteOptions {
  readonly config: RehearsalConfig;
  /** Where the service under rehearsal is. */
  readonly url: string;
  /** As a principal with the role `runner`: the runs are its own. */
  readonly runner: WritClient;
  /** As a principal with the role `operator`: stops runs and reads the log. */
  readonly operator: WritClient;
  /** How the suite's proxy reaches the coordinator; only looked at when the configuration asks for a proxy. */
  readonly upstream: () => { readonly address: string; readonly credentials: ChannelCredentials };
  /** Names of the cases to play; default: all. */
  readonly only?: readonly string[];
  /** Told of each case as soon as it is over. */
  readonly onCase?: (resource: ResourceConfig, result: CaseResult) => void;
  /** Called before a resource is written: with the runs that will. */
  readonly onBegin?: (resource: ResourceConfig, runIds: readonly string[]) => Promise<void>;
  /** Called when all cases of a resource are over. */
  readonly onEnd?: (resource: ResourceConfig, result: ResourceResult) => Promise<void>;
}

/** A case that takes longer is given up as undecided, at its next step. */
const CASE_MS = 90_000;

/**
 * Plays every case on every resource of the configuration, one after another. It never throws for what the service does:
 * that is in the results. Throws RehearsalConfigError where a declared gap is of no case, or it cannot listen where it should,
 * and TargetUnreachableError where there is no service at all.
 *
 * @example
 * const results = await rehearse({ config, url: 'http://127.0.0.1:8080', runner, operator, upstream });
 * process.exitCode = results.every(({ passed }) => passed) ? 0 : 7;
 */
export async function rehearse(options: SuiteOptions): Promise<readonly ResourceResult[]> {
  const { config } = options;
  refuseUnknownGaps(config);
  const proxy = await startStandIn(options);
  const pauses =
    config.pause === undefined
      ? undefined
      : await PauseServer.start(config.pause.listen).catch(async (error) => {
          await proxy?.stop();
          throw cannotListen('pause.listen', error);
        });
  try {
    await targetOf(options).reach();
    const results: ResourceResult[] = [];
    for (const resource of config.resources) results.push(await rehearseResource(options, resource, proxy, pauses));
    return results;
  } finally {
    await Promise.all([proxy?.stop(), pauses?.stop()]);
  }
}

function refuseUnknownGaps({ resources }: RehearsalConfig): void {
  const problems = resources.flatMap(({ gaps = {} }, index) =>
    Object.keys(gaps)
      .filter((gap) => !CASES.some(({ name }) => name === gap || name.startsWith(`${gap}:`)))
      .map((gap) => ({ path: `resources[${index}].gaps.${gap}`, message: 'is no case of the suite' })),
  );
  if (problems.length > 0) throw new RehearsalConfigError(problems);
}

async function startStandIn({ config, upstream }: SuiteOptions): Promise<StandIn | undefined> {
  const { proxy, http_proxy: httpProxy } = config.coordinator;
  try {
    if (httpProxy !== undefined) return await HttpCoordinatorProxy.start(httpProxy);
    return proxy && (await CoordinatorProxy.start({ listen: proxy.listen, upstream: upstream() }));
  } catch (error) {
    throw cannotListen(`coordinator.${httpProxy === undefined ? 'proxy' : 'http_proxy'}.listen`, error);
  }
}

function cannotListen(path: string, error: unknown): RehearsalConfigError {
  return new RehearsalConfigError([{ path, message: error instanceof Error ? error.message : String(error) }]);
}

function targetOf({ url, config }: SuiteOptions): Target {
  return new Target(url.replace(/\/+$/, ''), config.target);
}

async function rehearseResource(
  options: SuiteOptions,
  resource: ResourceConfig,
  proxy: StandIn | undefined,
  pauses: PauseServer | undefined,
): Promise<ResourceResult> {
  const { config, runner, operator } = options;
  let steps: string[] = [];
  const patience = new Patience();
  const say = (step: string) => {
    steps.push(step);
  };
  const target = targetOf(options);
  const { validation } = await operator.conflictMap.resolveResource({ resource: resource.resource });
  const decidesAlone = validation === Validation.VALIDATION_LOCAL || validation === Validation.VALIDATION_VIEW;
  // What a run gives back early is kept from the next one until its lease would have ended: hence short ones.
  const ttlMs = decidesAlone ? shortTtlMs(config) : undefined;
  const around = { config, target, runner, ttlMs, say, goOn: () => patience.goOn() };
  const runs: RehearsalRun[] = [];
  for (const name of ['A', 'B', 'C']) runs.push(await RehearsalRun.create(name, resource, around));
  const [a, b, c] = runs as [RehearsalRun, RehearsalRun, RehearsalRun];
  try {
    for (const run of runs) await run.prepare();
    await options.onBegin?.(
      resource,
      runs.map(({ runId }) => runId),
    );
    const stage: Stage = { config, resource, target, a, b, c, operator, decidesAlone, proxy, pauses, say };
    const cases: CaseResult[] = [];
    for (const one of CASES) {
      if (options.only !== undefined && !options.only.includes(one.name)) continue;
      steps = [];
      const result = await play(one, stage, runs, patience, () => steps);
      cases.push(result);
      options.onCase?.(resource, result);
    }
    const result = { resource: resource.resource, action: resource.action, cases, passed: hasPassed(cases) };
    await options.onEnd?.(resource, result);
    return result;
  } finally {
    for (const run of runs) await run.finish().catch(() => undefined);
  }
}

async function play(
  one: Case,
  stage: Stage,
  runs: readonly RehearsalRun[],
  patience: Patience,
  steps: () => readonly string[],
): Promise<CaseResult> {
  const startedAt = performance.now();
  const gap = gapFor(one, stage.resource);
  let outcome: Outcome = 'passed';
  let message =
    gap === undefined ? '' : `declared as a gap (${gap}), and not seen: if it is closed, declare it no more`;
  try {
    await patience.with(prepareAndPlay(one, stage));
  } catch (error) {
    [outcome, message] = [outcomeOf(error), messageOf(error)];
    if (outcome === 'failed' && gap !== undefined) [outcome, message] = ['declared_gap', `${gap}. Seen: ${message}`];
  }
  // What a case leaves behind must not stand in the way of the next one.
  for (const run of runs) await run.letGo().catch(() => undefined);
  await stage.proxy?.mend();
  const { name, title, proves } = one;
  const ms = Math.round(performance.now() - startedAt);
  return { name, title, proves, outcome, message, steps: foldRepeats(steps()), ms };
}

async function prepareAndPlay(one: Case, stage: Stage): Promise<void> {
  const { prepare } = stage.resource;
  if (prepare !== undefined) {
    const request = {
      ...prepare,
      headers: prepare.headers ?? {},
      body: prepare.body,
      requestId: `rehearsal-${one.name}`,
    };
    const answer = await stage.target.send(request, { unique: one.name });
    if (!isAccepted(answer)) throw new Undecided(`it cannot be prepared: ${shown(answer)}`);
  }
  await one.play(stage);
}

/** A case that takes too long is given up: what it does next fails, and it is over before the next one begins. */
class Patience {
  private isOver = false;

  goOn(): void {
    if (this.isOver) throw new Undecided(`it took more than ${CASE_MS / 1_000} s`);
  }

  async with(work: Promise<void>): Promise<void> {
    this.isOver = false;
    const timer = setTimeout(() => {
      this.isOver = true;
    }, CASE_MS);
    try {
      // Every step of it is bounded by itself.
      await work;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Why the configuration says that the service cannot hold in this case, played in whatever way. */
function gapFor({ name }: Case, { gaps = {} }: ResourceConfig): string | undefined {
  return gaps[name] ?? gaps[name.split(':')[0] ?? ''];
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof Breach) return 'failed';
  return error instanceof NotApplicable ? 'not_applicable' : 'undecided';
}

function messageOf(error: unknown): string {
  if (error instanceof UnfilledPlace) return `a template cannot be filled: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
