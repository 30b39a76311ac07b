import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/** Percent of what was alive after a full collection that a large heap grows by before the next one. */
const GROWTH_PERCENT = 70;
/** A smaller heap grows by so much: collecting it more often would cost a tenth of the throughput. */
const GROWTH_BYTES = 128 * 1_048_576;
const LOOK_EVERY_MS = 2_000;
/** The least that was in use at so many looks is about what is alive, as a collection lies between them under load. */
const LOOKS = 3;

/**
 * Fits V8's collector to a coordinator, once it is ready: what a start loads stays, and collections meanwhile find
 * nothing. Measured in docs/performance.md.
 *
 * - Collections of the young generation take one thread. Where the processors have other work, Postgres's first, the
 *   helpers of a collection of some milliseconds cost more than they save.
 * - The heap grows less between full collections than V8 would let it. A coordinator keeps what is live for as long as it
 *   is: what lies between the leases by the time of a full collection leaves pages behind that are not full, and those are
 *   not given back.
 */
export function tuneHeap(): void {
  setFlagsFromString('--no-parallel-scavenge');
  let looks: number[] = [];
  setInterval(() => {
    looks = [...looks, getHeapStatistics().used_heap_size].slice(-LOOKS);
    const growth = Math.max(GROWTH_PERCENT, Math.round((100 * GROWTH_BYTES) / Math.min(...looks)));
    setFlagsFromString(`--heap-growing-percent=${growth}`);
  }, LOOK_EVERY_MS).unref();
}
