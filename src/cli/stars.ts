import { starRemark } from '../domain/pattern.js';
import type { Output } from './output.js';

/** Says of the first pattern with a star that it freezes, or allows, next to nothing: no wildcard is meant by it here. */
export function noteStars(out: Output, patterns: readonly string[]): void {
  const remark = patterns.map(starRemark).find((found) => found !== null) ?? null;
  if (remark !== null) out.note(remark);
}
