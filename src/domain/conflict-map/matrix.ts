import type { ConflictMap } from './map.js';

export interface TaskPair {
  readonly taskA: string;
  readonly taskB: string;
  readonly canCollide: boolean;
  readonly always: boolean;
  readonly because: readonly string[];
  readonly inputChanges: readonly string[];
}

export function taskMatrix(_map: ConflictMap): TaskPair[] {
  throw new Error('not yet');
}
