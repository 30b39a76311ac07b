import { WritError } from '../clients/common/errors.js';

/** What a call answers; `otherwise` where the caller's roles may not ask. */
export function unlessForbidden<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  return answer.catch((error: unknown) => {
    if (error instanceof WritError && error.code === 'PERMISSION_DENIED') return otherwise;
    throw error;
  });
}
