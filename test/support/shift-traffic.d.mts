import type { PoolClient } from 'pg';
import type { OrderedChange, StepEffects } from '../../src/clients/target/index.js';

export function shiftTraffic(
  effects?: StepEffects,
  inSecond?: (client: PoolClient) => Promise<void>,
): OrderedChange<{ env: string; image: string }>;
