import { putMap, startReplica, type TestReplica, type TestReplicaOptions } from './coordinator.js';
import { createTestDatabase, type TestDatabase } from './postgres.js';

/** Two replicas of one coordinator, over a database of their own. */
export interface TwoReplicas {
  readonly a: TestReplica;
  readonly b: TestReplica;
  readonly database: TestDatabase;
  /** Ends both and removes the database. */
  stop(): Promise<void>;
}

type Differently = Omit<TestReplicaOptions, 'url'>;

export async function startTwoReplicas(options: {
  /** In force in the default namespace. */
  readonly map: string;
  /** What is different with one of them. */
  readonly a?: Differently;
  readonly b?: Differently;
}): Promise<TwoReplicas> {
  const database = await createTestDatabase();
  const started: TestReplica[] = [];
  const stop = async () => {
    for (const replica of started) await replica.stop();
    await database.drop();
  };
  const start = async (differently: Differently = {}) => {
    const replica = await startReplica({ ...differently, url: database.url });
    started.push(replica);
    return replica;
  };
  try {
    const a = await start(options.a);
    const b = await start(options.b);
    await putMap(a.api, options.map);
    return { a, b, database, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
