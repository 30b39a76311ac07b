import { useEffect, useMemo } from 'preact/hooks';
import { databaseNow, learnDatabaseTime } from '../clock.js';
import { type LeaseChanges, leaseChanges } from '../pure/lease-changes.js';
import { lengthMs, millisOf } from '../pure/moments.js';
import { createStore, useStore } from '../store.js';
import { get } from './client.js';
import { liveState, onEvents } from './live.js';
import { asProblem, type Problem } from './problem.js';
import type { Answer, Lease } from './shapes.js';

/**
 * All live and waiting leases of the namespace: read once, page by page, and kept up to date by what the log tells. A
 * thousand renewals a second change some numbers in memory, and the screens look once in a while.
 */
export interface LeaseTable {
  /** Whose they are. */
  readonly namespace: string;
  readonly leases: readonly Lease[];
  /** False: there are more than are read. */
  readonly complete: boolean;
  readonly loading: boolean;
  readonly problem: Problem | null;
}

type Leases = Answer<'ListLeasesResponse'>;

const PAGE_SIZE = 1_000;
const MAX_LEASES = 20_000;
/** More than so many are read again with all others. */
const MAX_SINGLE_READS = 24;
const REST_MS = 1_000;
const WHOLE_REST_MS = 5_000;
/** How often all is read where no events tell. */
const POLL_MS = 10_000;

const noneOf = (namespace: string): LeaseTable => ({
  namespace,
  leases: [],
  complete: true,
  loading: true,
  problem: null,
});
const table = createStore<LeaseTable>(noneOf(''));

class LeaseReader {
  readonly #namespace: string;
  readonly #aborter = new AbortController();
  #leases = new Map<string, Lease>();
  #complete = true;
  #reading = false;
  #again = false;
  #lastWhole = Number.NEGATIVE_INFINITY;
  #wholeTimer = 0;
  #showTimer = 0;
  readonly #poll: number;
  readonly #forget: () => void;

  constructor(namespace: string) {
    this.#namespace = namespace;
    table.set(noneOf(namespace));
    this.#forget = onEvents((events) => void this.#hear(leaseChanges(events)));
    this.#poll = window.setInterval(() => {
      if (liveState.get() === 'off' && !document.hidden) void this.readAll();
    }, POLL_MS);
    void this.readAll();
  }

  close(): void {
    this.#aborter.abort();
    this.#forget();
    window.clearInterval(this.#poll);
    window.clearTimeout(this.#wholeTimer);
    window.clearTimeout(this.#showTimer);
  }

  async readAll(): Promise<void> {
    if (this.#reading) {
      this.#again = true;
      return;
    }
    this.#reading = true;
    this.#lastWhole = performance.now();
    try {
      const found = new Map<string, Lease>();
      let token = '';
      do {
        const page: Leases = await this.#get('/v1/leases', { page_size: String(PAGE_SIZE), page_token: token });
        for (const lease of page.leases ?? []) found.set(lease.leaseId, lease);
        learnFrom(page.leases?.[0]);
        token = page.nextPageToken ?? '';
      } while (token !== '' && found.size < MAX_LEASES);
      this.#leases = found;
      this.#complete = token === '';
      this.#show(null);
    } catch (error) {
      if (this.#aborter.signal.aborted) return;
      const problem = asProblem(error);
      this.#show(problem);
      this.#again ||= problem.mayPass;
    } finally {
      this.#reading = false;
      if (this.#again) {
        this.#again = false;
        this.#readAllSoon();
      }
    }
  }

  #readAllSoon(): void {
    if (this.#wholeTimer !== 0 || this.#aborter.signal.aborted) return;
    const wait = Math.max(0, WHOLE_REST_MS - (performance.now() - this.#lastWhole));
    this.#wholeTimer = window.setTimeout(() => {
      this.#wholeTimer = 0;
      void this.readAll();
    }, wait);
  }

  async #hear({ touched, ended, renewed, everything }: LeaseChanges): Promise<void> {
    for (const id of ended) this.#leases.delete(id);
    for (const [id, expiresAt] of renewed) {
      const lease = this.#leases.get(id);
      if (lease !== undefined) this.#leases.set(id, { ...lease, expiresAt: new Date(expiresAt).toISOString() });
    }
    if (everything || touched.size > MAX_SINGLE_READS || this.#reading) this.#readAllSoon();
    else await Promise.all([...touched].map((id) => this.#readOne(id)));
    if (ended.size + renewed.size + touched.size > 0) this.#showSoon();
  }

  async #readOne(id: string): Promise<void> {
    try {
      const { lease }: { lease?: Lease } = await this.#get(`/v1/leases/${id}`, {});
      if (lease === undefined || lease.state === 'LEASE_STATE_ENDED') this.#leases.delete(id);
      else this.#leases.set(id, lease);
    } catch {
      this.#readAllSoon();
    }
  }

  #get<T>(path: string, query: Readonly<Record<string, string>>): Promise<T> {
    return get<T>(path, { namespace: this.#namespace, signal: this.#aborter.signal, query });
  }

  #showSoon(): void {
    if (this.#showTimer !== 0) return;
    this.#showTimer = window.setTimeout(() => {
      this.#showTimer = 0;
      this.#show(null);
    }, REST_MS);
  }

  #show(problem: Problem | null): void {
    if (this.#aborter.signal.aborted) return;
    const leases = [...this.#leases.values()];
    table.set({ namespace: this.#namespace, leases, complete: this.#complete, loading: false, problem });
  }
}

/** The answer was made a moment ago: what it says was left then tells the database's time. */
function learnFrom(lease: Lease | undefined): void {
  const expiresAt = millisOf(lease?.expiresAt);
  const left = lengthMs(lease?.expiresIn);
  if (expiresAt !== null && left !== null && left > 0) learnDatabaseTime(expiresAt - left);
}

let reader: { readonly namespace: string; readonly is: LeaseReader; users: number } | null = null;

/** The leases of the namespace; they are read while somebody looks. */
export function useLeases(namespace: string): LeaseTable {
  useEffect(() => {
    if (reader?.namespace !== namespace) {
      reader?.is.close();
      reader = { namespace, is: new LeaseReader(namespace), users: 0 };
    }
    const used = reader;
    used.users += 1;
    return () => {
      used.users -= 1;
      if (used.users > 0) return;
      used.is.close();
      if (reader === used) reader = null;
    };
  }, [namespace]);
  const known = useStore(table);
  const none = useMemo(() => noneOf(namespace), [namespace]);
  // What was read of another namespace is not shown for a moment either.
  return known.namespace === namespace ? known : none;
}

/** Whether the lease is held, and not over by its time: a sweep writes the end some moments later. */
export const isHeld = (lease: Lease): boolean =>
  lease.state === 'LEASE_STATE_ACTIVE' && (millisOf(lease.expiresAt) ?? 0) > databaseNow();
