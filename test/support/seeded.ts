import { Random } from '../harness/random.js';

/** What varies in a test of faults: by a seed that its failures tell, and that WRIT_SEED gives again. */
export function seeded(): Random {
  return new Random(Number(process.env.WRIT_SEED ?? Math.floor(Math.random() * 1e9)));
}
