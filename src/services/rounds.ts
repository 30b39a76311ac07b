/** What is done with every namespace that is loaded, again and again. */
export interface RoundsOptions<E> {
  /** Milliseconds between two beginnings. */
  readonly everyMs: number;
  /** Namespaces that are loaded. */
  readonly engines: () => readonly E[];
  readonly visit: (engine: E) => Promise<void>;
  /** Told of each visit that failed. */
  readonly failed: (engine: E, error: unknown) => void;
}

/** One namespace after the other; one that fails keeps no other from it, and a round that is slow is not overtaken. */
export class Rounds<E> {
  private timer: NodeJS.Timeout | undefined;
  private running = false;

  constructor(private readonly options: RoundsOptions<E>) {}

  start(): void {
    this.timer = setInterval(() => void this.once(), this.options.everyMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Nothing while a round is under way. */
  async once(): Promise<void> {
    if (this.running) return;
    this.running = true;
    const { engines, visit, failed } = this.options;
    for (const engine of engines()) await visit(engine).catch((error: unknown) => failed(engine, error));
    this.running = false;
  }
}
