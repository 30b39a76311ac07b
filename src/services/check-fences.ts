import { toFault } from '../engine/trouble.js';
import { monotonicMicros } from '../platform/clock.js';
import type { CheckedFence, MadeCheck, Outcome } from './api.js';
import { answerTo, checkFence, checkFields, decide, isUnadmitted } from './check-fence.js';
import { type Deps, engineOf } from './deps.js';

/**
 * Many checks of one caller in one namespace, each as CheckFence decides it. Those that are decided from memory alone are
 * decided together, by one read index and one value of the clock; one with a credential, about a lease that is not in
 * memory, that must be let in first, or that fails, is decided by itself. `told` is called once for each, by and by.
 */
export async function checkFences(
  deps: Deps,
  checks: readonly MadeCheck[],
  told: (index: number, outcome: Outcome<CheckedFence>) => void,
): Promise<void> {
  const arrivedAt = monotonicMicros();
  const failed = (index: number, error: unknown): void => told(index, { ok: false, error: toFault(error) });
  const alone = ({ context, input }: MadeCheck, index: number): void => {
    checkFence(deps, context, input).then(
      (answer) => told(index, { ok: true, answer }),
      (error: unknown) => failed(index, error),
    );
  };
  const together: (MadeCheck & { readonly index: number })[] = [];
  checks.forEach(({ context, input }, index) => {
    if (input.credential !== undefined && input.credential !== '') return alone({ context, input }, index);
    try {
      checkFields(input);
      together.push({ context, input, index });
    } catch (error) {
      failed(index, error);
    }
  });
  const [first] = together;
  if (first === undefined) return;
  try {
    const engine = await engineOf(deps, first.context);
    const { value, revision, now } = await engine.read((view) =>
      together.map(({ context, input }) => {
        try {
          return decide(deps, view, null, context.principal.name, input);
        } catch {
          // A lease that has to be looked up, or a check that cannot be decided, is nothing to the others.
          return null;
        }
      }),
    );
    const micros = monotonicMicros() - arrivedAt;
    together.forEach(({ context, input, index }, at) => {
      const decided = value[at] ?? null;
      if (decided === null || isUnadmitted(decided)) return alone({ context, input }, index);
      deps.metrics.checked(micros);
      const answer = { value: answerTo(deps, engine.namespace, context, input, decided), revision, now };
      told(index, { ok: true, answer });
    });
  } catch (error) {
    for (const { index } of together) failed(index, error);
  }
}
