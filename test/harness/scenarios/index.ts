import { f10, f15, f17, f22 } from './crowds.js';
import { f9, f11, f24, f25 } from './database.js';
import { f4, f6, f8 } from './holders.js';
import { f1, f7, f14, f16 } from './lost-answers.js';
import { f13, f23 } from './older-database.js';
import { f2, f3, f12, f21, f26 } from './replicas.js';
import type { Scenario } from './scenario.js';
import { coveredBy } from './tests.js';

export type { Scenario } from './scenario.js';

const FORGED = ['test/integration/abuse-forged-credentials.test.ts', 'test/integration/fence-check.test.ts'];
const VERIFIERS = [
  'test/unit/verify-credential.test.ts',
  'test/unit/credential-token.test.ts',
  'test/unit/callers.test.ts',
];
const ROTATED = [
  'test/integration/abuse-key-rotation.test.ts',
  'test/integration/signing-keys.test.ts',
  'test/integration/keys-of-credentials.test.ts',
  'test/unit/signing-keys.test.ts',
  'test/unit/verify-credential.test.ts',
  'test/unit/callers.test.ts',
];

/** Every case of the fault catalogue, in its order. */
export const SCENARIOS: readonly Scenario[] = [
  f1,
  f2,
  f3,
  f4,
  coveredBy('F5', 'a crowd waits, the server bounces', ['test/faults/runner-crowd.test.ts'], 'F5', ({ full }) =>
    full ? { WRIT_CROWD: '5000' } : { WRIT_CROWD: '1000' },
  ),
  f6,
  f7,
  f8,
  f9,
  f10,
  f11,
  f12,
  f13,
  f14,
  f15,
  f16,
  f17,
  coveredBy('F18', 'hostile headers of credentials', [...FORGED, ...VERIFIERS], 'F18'),
  coveredBy('F19', 'claims that are missing or of another type', [...FORGED, ...VERIFIERS], 'F19'),
  coveredBy('F20', 'keys rotate under load', ROTATED, 'F20'),
  f21,
  f22,
  f23,
  f24,
  f25,
  f26,
];
