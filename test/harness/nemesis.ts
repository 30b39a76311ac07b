import { setTimeout as pause } from 'node:timers/promises';
import type { Replica } from './cluster.js';
import type { Random } from './random.js';
import type { World } from './world.js';

/** Something that goes wrong for a while, and is well again when its promise resolves. */
interface Mishap {
  readonly name: string;
  /** How often, against the others. */
  readonly weight: number;
  readonly happens: (world: World, replica: Replica, random: Random) => Promise<void>;
}

const seconds = (random: Random, least: number, most: number) => pause(1_000 * random.between(least, most));

const MISHAPS: readonly Mishap[] = [
  {
    name: 'callers cut off',
    weight: 2,
    happens: async (_, { network }, random) => {
      network.refusing = true;
      network.cut();
      await seconds(random, 0.2, 2);
      network.refusing = false;
    },
  },
  {
    name: 'answers lost',
    weight: 3,
    happens: async (_, { network }, random) => {
      network.lose('down');
      await seconds(random, 0.05, 0.5);
      network.cut();
    },
  },
  {
    name: 'calls held back, then delivered',
    weight: 2,
    happens: async (_, { network }, random) => {
      network.hold(random.chance(0.5) ? 'up' : 'down');
      await seconds(random, 0.5, 3.5);
      network.letGo();
    },
  },
  {
    name: 'every call twice',
    weight: 2,
    happens: async (_, { network }, random) => {
      network.mirroring = true;
      network.cut();
      await seconds(random, 0.5, 2);
      network.mirroring = false;
      network.cut();
    },
  },
  {
    name: 'slow callers',
    weight: 1,
    happens: async (_, { network }, random) => {
      network.delayMs = random.between(20, 300);
      await seconds(random, 0.5, 2);
      network.delayMs = 0;
    },
  },
  {
    name: 'database cut off',
    weight: 2,
    happens: (world, { name, database }, random) => {
      database.refusing = true;
      database.cut();
      return world.recorder.outage(`replica ${name} was cut off from the database`, name, async () => {
        await seconds(random, 0.3, 3);
        database.refusing = false;
      });
    },
  },
  {
    name: "database's answers lost",
    weight: 3,
    happens: async (_, { database }, random) => {
      database.lose('down');
      await seconds(random, 0.05, 0.4);
      database.cut();
    },
  },
  {
    name: 'slow database',
    weight: 2,
    happens: async (_, { database }, random) => {
      database.delayMs = random.between(10, 200);
      await seconds(random, 0.5, 3);
      database.delayMs = 0;
    },
  },
  {
    name: 'database held back, then delivered',
    weight: 2,
    happens: async (_, { database }, random) => {
      database.hold(random.chance(0.5) ? 'up' : 'down');
      await seconds(random, 0.3, 3.5);
      database.letGo();
    },
  },
  {
    name: 'replica stopped and continued',
    weight: 3,
    happens: async (_, replica, random) => {
      replica.process.signal('SIGSTOP');
      await seconds(random, 0.3, 4);
      replica.process.signal('SIGCONT');
    },
  },
  {
    name: 'replica killed',
    weight: 2,
    happens: async (_, replica, random) => {
      await replica.kill();
      await seconds(random, 0, 0.5);
      await replica.up();
    },
  },
  {
    name: 'replica killed in the middle of a delegation',
    weight: 2,
    happens: async (world, replica, random) => {
      const asked = (await world.nextDelegation(2_000)) ?? replica;
      // Before it is decided, while it is written, or before it is answered.
      await pause(random.next() * 20);
      await asked.kill();
      await seconds(random, 0, 0.5);
      await asked.up();
    },
  },
  {
    name: 'replica shut down',
    weight: 1,
    happens: async (_, replica, random) => {
      await replica.stop();
      await seconds(random, 0, 0.5);
      await replica.up();
    },
  },
  {
    name: "replica's clock off by an hour",
    weight: 2,
    happens: async (_, { clock }, random) => {
      await clock?.set(random.chance(0.5) ? 3_600 : -3_600);
      await seconds(random, 0.5, 2);
      await clock?.set(0);
    },
  },
  {
    name: 'Postgres killed',
    weight: 1,
    happens: async ({ cluster, recorder }, _, random) => {
      await cluster.postgres.kill9();
      // Its backends end what they are at, and then themselves.
      await pause(500);
      await recorder.outage('Postgres was down', '', () => seconds(random, 0, 1));
      await cluster.postgres.restart();
    },
  },
];

/** Goes wrong again and again, as the seed says, until the time is over; returns how often each happened. */
export async function misfortune(world: World, random: Random, forMs: number): Promise<Map<string, number>> {
  const happened = new Map<string, number>();
  const deck = MISHAPS.flatMap((mishap) => Array.from({ length: mishap.weight }, () => mishap));
  for (const until = performance.now() + forMs; performance.now() < until; ) {
    await seconds(random, 0.1, 1);
    const mishap = random.pick(deck);
    happened.set(mishap.name, (happened.get(mishap.name) ?? 0) + 1);
    await mishap.happens(world, random.pick(world.cluster.replicas), random);
  }
  return happened;
}
