import { describe, expect, it } from 'vitest';
import type { NamespaceEngine } from '../../src/engine/namespace-engine.js';
import { Replica, type ReplicaOptions } from '../../src/engine/replica.js';

describe('the purge of what is over', () => {
  it('goes on while portions are full, in turn over the namespaces, and one that fails ends nothing', async () => {
    const left = new Map([
      ['big', 450],
      ['bad', 1_000],
      ['small', 3],
    ]);
    const calls: string[] = [];
    const problems: string[] = [];
    const options = {
      purgeAfter: 0,
      observer: { problem: (message: string) => problems.push(message) },
      store: {
        async purge(namespace: string, _before: number, limit: number) {
          calls.push(namespace);
          if (namespace === 'bad') throw new Error('no');
          const purged = Math.min(limit, left.get(namespace) ?? 0);
          left.set(namespace, (left.get(namespace) ?? 0) - purged);
          return purged;
        },
        eraseTextsBefore: async () => 0,
        readCut: async () => null,
      },
    };
    class Loaded extends Replica {
      override loaded(): readonly NamespaceEngine[] {
        const engines = [...left.keys()].map((namespace) => ({ namespace, notReady: null, estimatedNow: () => 1 }));
        return engines as unknown as readonly NamespaceEngine[];
      }
    }
    const replica = new Loaded(options as unknown as ReplicaOptions);
    await (replica as unknown as { purge(): Promise<void> }).purge();
    expect(calls).toEqual(['big', 'bad', 'small', 'big', 'big']);
    expect(problems).toHaveLength(1);
  });
});
