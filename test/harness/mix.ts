import type { Call, CallOf, History } from './history.js';
import { misfortune } from './nemesis.js';
import { Random } from './random.js';
import type { Stage } from './stage.js';
import { Workload } from './workload.js';
import { type Outcome, World } from './world.js';

export interface MixResult extends Outcome {
  /** How often what went wrong. */
  readonly happened: ReadonlyMap<string, number>;
  /** How many answers came which way. */
  readonly ways: ReadonlyMap<string, number>;
}

/** One round of everything at once: the workload, and what goes wrong, both drawn from the seed. */
export async function runMix(stage: Stage, seed: number, forMs: number): Promise<MixResult> {
  const random = new Random(seed);
  const world = await World.open(stage, 'mix', { replicas: 2 + random.below(2), clocks: true, watches: true });
  const workload = Workload.start(world, random.fork('workload'));
  const happened = await misfortune(world, random.fork('misfortune'), forMs);
  await world.cluster.heal();
  await workload.stop();
  const outcome = await world.judge();
  return { ...outcome, happened, ways: waysOf(outcome.history) };
}

function waysOf({ calls }: History): Map<string, number> {
  const told = calls.filter((call) => call.told !== null);
  const of = (isOne: (call: Call) => boolean): number => told.filter(isOne).length;
  return new Map([
    ['on sessions', of(({ by, kind }) => by.startsWith('session-') && kind !== 'create_run')],
    ['checks on streams', of(({ by, kind }) => by.startsWith('stream-') && kind === 'check')],
    ['pushed', of(({ kind }) => kind === 'pushed')],
    ['leases of the runner kit', of(({ kind }) => kind === 'held')],
    ['parts given to child runs', of((call) => call.kind === 'acquire' && isPart(call))],
  ]);
}

function isPart({ asked, told }: CallOf<'acquire'>): boolean {
  return asked.delegatedFrom !== '' && told?.outcome === 'lease';
}
