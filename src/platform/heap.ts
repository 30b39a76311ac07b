import { setFlagsFromString } from 'node:v8';

/** Percent of what was alive after a full collection that the heap grows by before the next one. */
const HEAP_GROWTH_PERCENT = 80;

/**
 * Lets the heap of this process grow less between full collections than V8 would, which is up to fourfold. A coordinator
 * keeps what is live for as long as it is: what lies between the leases by the time of a full collection leaves pages
 * behind that are not full, and those are not given back. For when it is ready: what a start loads stays, and collections
 * meanwhile find nothing. Measured in docs/performance.md.
 */
export function keepHeapSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
}
