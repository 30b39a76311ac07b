import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/** Percent of what was alive after a full collection that a large heap grows by before the next one. */
const GROWTH_PERCENT = 80;
/** V8's own choice, up to fourfold. */
const OWN_CHOICE = 0;
/** With less alive than this, what lies between is not worth a collection. */
const LARGE_BYTES = 200 * 1_048_576;
const LOOK_EVERY_MS = 2_000;
/** The least that was in use at so many looks is about what is alive, as a collection lies between them under load. */
const LOOKS = 3;

/**
 * Fits V8's collector to a coordinator, once it is ready: what a start loads stays, and collections meanwhile find
 * nothing. Measured in docs/performance.md.
 *
 * - Collections of the young generation take one thread. The helpers of a collection of some milliseconds cost more than
 *   they save, and the processor that they take is Postgres's.
 * - A large heap grows less between full collections than V8 would let it. A coordinator keeps what is live for as long as
 *   it is: what lies between the leases by the time of a full collection leaves pages behind that are not full, and those
 *   are not given back. A small one is left alone, since collecting it more often would cost a tenth of the throughput.
 */
export function tuneHeap(): void {
  setFlagsFromString('--no-parallel-scavenge');
  let looks: number[] = [];
  setInterval(() => {
    looks = [...looks, getHeapStatistics().used_heap_size].slice(-LOOKS);
    const isLarge = Math.min(...looks) >= LARGE_BYTES;
    setFlagsFromString(`--heap-growing-percent=${isLarge ? GROWTH_PERCENT : OWN_CHOICE}`);
  }, LOOK_EVERY_MS).unref();
}
