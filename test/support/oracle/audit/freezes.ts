import type { EventBody } from '../../../../src/domain/event.js';
import type { Micros } from '../../../../src/domain/time.js';
import { promise } from '../violation.js';
import type { Facts } from './facts.js';

export function patternFrozen(facts: Facts, body: Extract<EventBody, { kind: 'pattern_frozen' }>): void {
  const { freeze } = body;
  const before = facts.freezes.get(freeze.pattern);
  const weaker =
    before !== undefined &&
    ((before.deniesChecks && !freeze.deniesChecks) ||
      (before.scope === 'subtree' && freeze.scope !== 'subtree') ||
      (freeze.until ?? Number.POSITIVE_INFINITY) < (before.until ?? Number.POSITIVE_INFINITY));
  promise(!weaker, `P8: the freeze of ${freeze.pattern} was weakened by another one`);
  facts.freezes.set(freeze.pattern, freeze);
}

export function patternThawed(
  facts: Facts,
  body: Extract<EventBody, { kind: 'pattern_thawed' }>,
  databaseNow: Micros,
): void {
  const freeze = facts.freezes.get(body.pattern);
  promise(freeze !== undefined, `P7: ${body.pattern} was thawed, which was not frozen`);
  const early = body.byTime && (freeze.until ?? Number.POSITIVE_INFINITY) > databaseNow;
  promise(!early, `P8: ${body.pattern} thawed before its time`);
  facts.freezes.delete(body.pattern);
}
