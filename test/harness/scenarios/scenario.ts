import type { Random } from '../random.js';
import type { Stage } from '../stage.js';
import type { Outcome } from '../world.js';

export interface Setting {
  readonly stage: Stage;
  readonly random: Random;
  readonly seed: number;
  /** As many of everything as the catalogue says. */
  readonly full: boolean;
}

export interface ScenarioResult extends Outcome {
  /** Tests that passed, where vitest ran them. */
  readonly tests?: number;
  /** Found out on the way. */
  readonly skipped?: string;
  readonly notes?: readonly string[];
}

/** A case of the fault catalogue. */
export interface Scenario {
  /** `F1` to `F26`. */
  readonly id: string;
  readonly title: string;
  /** Why it cannot be run here; empty: it can. */
  readonly missing: () => string;
  readonly run: (setting: Setting) => Promise<ScenarioResult>;
}

export const nothingMissing = (): string => '';
