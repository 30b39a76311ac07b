import fc from 'fast-check';

// With WRIT_SEED set, a run draws the same cases as the last one did, in properties as in tests of faults.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.WRIT_SEED) });
