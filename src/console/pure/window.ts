/** The rows of a long list that can be seen, and some around them: only these are on the page. */
export interface RowWindow {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

const OVERSCAN = 8;

export function windowOf(scrollTop: number, height: number, rowHeight: number, count: number): RowWindow {
  const first = Math.floor(Math.max(0, scrollTop) / rowHeight) - OVERSCAN;
  const last = Math.ceil((Math.max(0, scrollTop) + height) / rowHeight) + OVERSCAN;
  const to = Math.min(count, Math.max(0, last));
  return { from: Math.min(Math.max(0, first), to), to };
}
