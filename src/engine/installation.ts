import { Fault, invalidArgument } from '../domain/fault.js';
import type { Store } from '../storage/store.js';
import type { NamespaceEngine } from './namespace-engine.js';
import type { Replica } from './replica.js';

/** The database in which a namespace lives unless it says otherwise, and which knows where the others live. */
export const MAIN_DATABASE = 'main';

/**
 * The databases that serve one installation, each with this process as one of its replicas. A namespace lives in one of
 * them for good. One that cannot be reached refuses for its own namespaces, and for no other.
 */
export class Installation {
  private readonly replicas: ReadonlyMap<string, Replica>;
  private readonly homes = new Map<string, Replica>();
  private readonly main: Replica;
  /** Of the main database. */
  private readonly store: Store;

  /** @param databases their stores by name; the main one is among them */
  constructor(
    databases: ReadonlyMap<string, Store>,
    makeReplica: (store: Store, livesHere: (namespace: string) => Promise<boolean>) => Replica,
  ) {
    const make = (store: Store): Replica => {
      const replica = makeReplica(store, async (namespace) => (await this.homeOf(namespace)) === replica);
      return replica;
    };
    this.replicas = new Map([...databases].map(([name, store]) => [name, make(store)]));
    const [main, store] = [this.replicas.get(MAIN_DATABASE), databases.get(MAIN_DATABASE)];
    if (main === undefined || store === undefined) throw new Error('an installation has a main database');
    this.main = main;
    this.store = store;
  }

  /** Resolves once the default namespace can decide; others may still be loading. */
  async start(): Promise<void> {
    await this.main.start();
    for (const replica of this.replicas.values()) if (replica !== this.main) await replica.join();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.replicas.values()].map((replica) => replica.stop()));
  }

  /** The engine of a namespace; rejects when there is none of that name. */
  async open(namespace: string): Promise<NamespaceEngine> {
    const known = this.homes.get(namespace);
    if (known !== undefined) return known.open(namespace);
    const replica = await this.homeOf(namespace);
    const engine = await replica.open(namespace);
    this.homes.set(namespace, replica);
    return engine;
  }

  /** Where a namespace lives, or would be made: one that nobody made yet is not remembered. */
  private async homeOf(namespace: string): Promise<Replica> {
    const known = this.homes.get(namespace);
    if (known !== undefined) return known;
    const database = await this.store.namespaceHome(namespace);
    const replica = this.replicaOf(namespace, database ?? MAIN_DATABASE);
    if (database !== null) this.homes.set(namespace, replica);
    return replica;
  }

  /** Creates a namespace in a database (null: in the main one, or wherever it is); false when it exists there. */
  async create(namespace: string, actor: string, database: string | null): Promise<boolean> {
    if (database !== null && !this.replicas.has(database)) {
      const description = `is not a database of this installation; there are: ${[...this.replicas.keys()].join(', ')}`;
      throw invalidArgument([{ field: 'database', description }]);
    }
    const inMain = (await this.store.readGate(namespace)).head !== null;
    const home = await this.store.claimNamespaceHome(namespace, inMain ? MAIN_DATABASE : (database ?? MAIN_DATABASE));
    if (database !== null && home !== database) {
      const text = `The namespace "${namespace}" lives in the database "${home}" already, and stays there.`;
      throw new Fault('failed_precondition', 'NAMESPACE_ELSEWHERE', text);
    }
    return this.replicaOf(namespace, home).create(namespace, actor);
  }

  /** Names of all namespaces after one, in order, at most `limit`. */
  async listNamespaces(after: string, limit: number): Promise<string[]> {
    const lists = await Promise.all([...this.replicas.values()].map((replica) => replica.listNamespaces(after, limit)));
    return [...new Set(lists.flat())].sort().slice(0, limit);
  }

  /** Name of the database of a namespace that was opened. */
  databaseOf(namespace: string): string {
    for (const [name, replica] of this.replicas) if (replica === this.homes.get(namespace)) return name;
    return MAIN_DATABASE;
  }

  /** See Replica. */
  attach(namespace: string, leaseId: string, attachment: number): void {
    this.homes.get(namespace)?.attach(namespace, leaseId, attachment);
  }

  /** See Replica. */
  async detach(namespace: string, leaseId: string, attachment: number): Promise<void> {
    await this.homes.get(namespace)?.detach(namespace, leaseId, attachment);
  }

  /** Engines that are loaded, for gauges. */
  loaded(): readonly NamespaceEngine[] {
    return [...this.replicas.values()].flatMap((replica) => replica.loaded());
  }

  /** Those of one database. */
  loadedIn(database: string): readonly NamespaceEngine[] {
    return this.replicas.get(database)?.loaded() ?? [];
  }

  /** Why this process should be sent no calls: another database in trouble does not take the rest along. */
  reasonsNotReady(): string[] {
    return this.main.reasonsNotReady();
  }

  private replicaOf(namespace: string, database: string): Replica {
    const replica = this.replicas.get(database);
    if (replica !== undefined) return replica;
    const text = `The namespace "${namespace}" lives in the database "${database}", which this coordinator does not know: add it to WRIT_DATABASES_FILE.`;
    throw new Fault('unavailable', 'DATABASE_NOT_CONFIGURED', text);
  }
}
