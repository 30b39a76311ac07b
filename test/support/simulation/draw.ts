import { Random } from '../../harness/random.js';

/** As the harness draws; chances are in percent, and lists may be empty. */
export class Draw {
  private readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  /** From 0, below `below`. */
  int(below: number): number {
    return this.random.below(below);
  }

  chance(percent: number): boolean {
    return this.int(100) < percent;
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[this.int(from.length)];
  }
}
