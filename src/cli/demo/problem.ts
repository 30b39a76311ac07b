import type { HttpAnswer } from './http.js';
import type { Narrator } from './narrate.js';

/** Reading what the target service answers. */

/** A member of a problem as text; empty when there is none. */
export function member(answer: HttpAnswer, name: string): string {
  const value = answer.body[name];
  return typeof value === 'string' ? value : '';
}

/** What one of the two gates said about a refused write. */
export function gateReason(answer: HttpAnswer, gate: 'guard' | 'coordinator'): string {
  const said = answer.body[gate];
  return typeof said === 'object' && said !== null && 'reason' in said ? String(said.reason) : '';
}

/** The gates that refused. */
export function refusedBy(answer: HttpAnswer): readonly string[] {
  const gates = answer.body.refused_by;
  return Array.isArray(gates) ? gates.map(String) : [];
}

/** A refusal of the fence, as it was answered. */
export function showFenceProblem(narrator: Narrator, answer: HttpAnswer): void {
  narrator.facts({
    answer: `${answer.status} ${member(answer, 'code')}: ${member(answer, 'detail')}`,
    guard: gateReason(answer, 'guard'),
    coordinator: gateReason(answer, 'coordinator'),
    'what to do': member(answer, 'next'),
  });
}
