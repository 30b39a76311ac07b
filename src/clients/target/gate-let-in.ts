import type { AllowedUnchecked, AllowedWrites } from './gate-decision.js';

/** What the gate let in, by the object that its middleware and the handler both have. */
const letIn = new WeakMap<object, AllowedWrites | AllowedUnchecked>();

/** Remembers a decision for the handler. */
export function remember(of: object, decision: AllowedWrites | AllowedUnchecked): void {
  letIn.set(of, decision);
}

/** What the gate decided: of hono's context, Express's request, or a gRPC call's metadata or message. Throws where no gate stood before the handler. */
export function decisionOf(of: object): AllowedWrites | AllowedUnchecked {
  const decision = letIn.get(of);
  if (decision === undefined) throw new TypeError('no gate let this request in: put its middleware before the handler');
  return decision;
}

/**
 * The writes that the gate let in: of hono's context, Express's request, or a gRPC call's metadata or message. Throws
 * where the route table declares none, so that a handler that was forgotten there writes nothing.
 *
 * @example
 * app.post('/releases/:env/promote', async (c) => {
 *   const { toGuard, observedVersion } = writesOf(c);
 *   return c.json({ guarded: toGuard.length, observedVersion });
 * });
 */
export function writesOf(of: object): AllowedWrites {
  const decision = decisionOf(of);
  if (decision.kind !== 'writes') throw new TypeError('the route table declares no write for this request');
  return decision;
}
