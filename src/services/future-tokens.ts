/** Presented tokens from the future that follow each other faster than this share a line. */
const LINE_EVERY_MS = 1_000;

/** The last check that presented one, and how many there were since the line before. */
export interface FutureTokens {
  readonly principal: string;
  readonly resource: string;
  readonly count: number;
}

/**
 * Raises the alarm when a check presents a token that is later than the database clock: somebody forged it, or the
 * database lost history (design: fencing). The first at once, then one line a second at most; never the token itself.
 */
export class FutureTokenAlarm {
  private gathered: FutureTokens | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly raise: (seen: FutureTokens) => void) {}

  note(principal: string, resource: string): void {
    this.gathered = { principal, resource, count: (this.gathered?.count ?? 0) + 1 };
    if (this.timer === null) this.tell();
  }

  /** What has been gathered is told at once; at the end of the process too. */
  tell(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.gathered === null) return;
    this.raise(this.gathered);
    this.gathered = null;
    this.timer = setTimeout(() => this.tell(), LINE_EVERY_MS);
    this.timer.unref();
  }
}
