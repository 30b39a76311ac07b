import type { Micros } from '../../../src/domain/time.js';

export const SECOND: Micros = 1_000_000;
