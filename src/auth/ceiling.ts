/** What bounds the contracts of a principal's runs is decided by the domain; the principals file says it. */
export type { Ceiling } from '../domain/ceiling.js';
