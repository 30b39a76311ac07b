import { type Micros, SECOND } from './time.js';

/** The longest life of a credential. */
export const CREDENTIAL_LIFE: Micros = 60 * SECOND;
/** How long past its end a verifier may still take one, as its clock is not the issuer's. */
export const CREDENTIAL_TOLERANCE: Micros = 5 * SECOND;
