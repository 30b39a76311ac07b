import type { Micros } from '../../../../src/domain/time.js';
import { promise } from '../violation.js';
import type { Audited } from './audited-lease.js';
import type { Facts } from './facts.js';

/** P2: every token is the time of its event, and later than any before. */
export function tokensInOrder(
  facts: Facts,
  entries: Audited['entries'],
  time: Micros,
  isNew: (token: Micros) => boolean = () => true,
): void {
  for (const entry of entries) {
    if (entry.access === 'read') promise(entry.token === 0, `P2: a read of ${entry.resource} has a token`);
    else if (isNew(entry.token)) {
      promise(entry.token === time, `P2: the token on ${entry.resource} is not the time of its grant`);
      promise(entry.token > facts.lastToken, `P2: the token on ${entry.resource} is not above all before`);
    }
  }
  facts.lastToken = time;
}
