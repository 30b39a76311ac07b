/** Refusals that follow each other faster than this share a line. */
const LINE_EVERY_MS = 10_000;
/** Causes that one line tells apart. */
const MAX_CAUSES = 32;

/** Callers that could not be authenticated since the line before, by cause. */
export interface RefusedCallers {
  readonly count: number;
  readonly causes: Readonly<Record<string, number>>;
}

/**
 * Tells of callers that could not be authenticated: the first at once, then one line in 10 s at most, with how many
 * there were. A flood of bad tokens must not fill the disk; what was presented is in no line.
 */
export class RefusedCallersLog {
  #causes = new Map<string, number>();
  #count = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(private readonly tell: (seen: RefusedCallers) => void) {}

  note(cause: string): void {
    this.#count += 1;
    const key = this.#causes.has(cause) || this.#causes.size < MAX_CAUSES ? cause : 'other';
    this.#causes.set(key, (this.#causes.get(key) ?? 0) + 1);
    if (this.#timer === null) this.flush();
  }

  /** What has been gathered is told at once; at the end of the process too. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#count === 0) return;
    this.tell({ count: this.#count, causes: Object.fromEntries(this.#causes) });
    this.#causes = new Map();
    this.#count = 0;
    this.#timer = setTimeout(() => this.flush(), LINE_EVERY_MS);
    this.#timer.unref();
  }
}
