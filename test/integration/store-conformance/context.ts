import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { AppendBatch, AppendResult, EventRecord, Head, Store } from '../../../src/storage/store.js';
import { headAfter, sampleBatch } from '../../support/sample-records.js';

/** A store with nothing in it; tests use namespaces of their own. */
export interface StoreUnderTest {
  readonly store: Store;
  /** A second store on the same data, such as another replica has; null: this kind cannot be shared. */
  another(): Promise<Store> | null;
  dispose(): Promise<void>;
}

export interface Context {
  readonly under: StoreUnderTest;
  readonly store: Store;
}
export type Use = (test: (context: Context) => Promise<void>) => () => Promise<void>;

export const newNamespace = (): string => `ns-${randomUUID()}`;

export function expectAppended(result: AppendResult | null): void {
  expect(result?.outcome).toBe('appended');
}

/** Appends, expects success, and returns the head after it. */
export async function append(store: Store, batch: AppendBatch): Promise<Head> {
  expectAppended(await store.append(batch));
  return headAfter(batch.events);
}

/** A new namespace with its first event. */
export async function createNamespace(store: Store, overrides: Partial<AppendBatch> = {}): Promise<[string, Head]> {
  const namespace = newNamespace();
  return [namespace, await append(store, sampleBatch(namespace, null, overrides))];
}

export async function wholeLog(store: Store, namespace: string, page = 1_000): Promise<EventRecord[]> {
  const log: EventRecord[] = [];
  for (;;) {
    const events = await store.readTail(namespace, log.at(-1)?.revision ?? 0, page);
    log.push(...events);
    if (events.length < page) return log;
  }
}

export function expectChained(log: readonly EventRecord[]): void {
  log.forEach((event, index) => {
    expect(event.revision).toBe(index + 1);
    if (index > 0) expect(event.prevHash).toBe(log[index - 1]?.hash);
  });
}

export const byId = <T extends { leaseId: string } | { runId: string }>(records: readonly T[]): T[] =>
  [...records].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
export const idOf = (record: { leaseId: string } | { runId: string }): string =>
  'leaseId' in record ? record.leaseId : record.runId;
