import { type PatternSegment, parsePatternSegment } from '../domain/pattern-segment.js';
import { segmentFlaw } from './segment.js';

/** A step of a template of the route table: as of a pattern in the map. */
export type Step = PatternSegment;

export type ParsedTemplate =
  | { readonly ok: true; readonly steps: readonly Step[] }
  | { readonly ok: false; readonly reason: string };

/** Reads `release/{env}`: literal segments, `{name}` for one, and a final `{name...}` for one or more. */
export function parseTemplate(text: string): ParsedTemplate {
  const steps: Step[] = [];
  const parts = text.split('/');
  for (const [index, part] of parts.entries()) {
    const step = parseStep(part);
    if (typeof step === 'string') return { ok: false, reason: `segment ${index + 1}: ${step}` };
    if (step.kind === 'rest' && index < parts.length - 1)
      return { ok: false, reason: `{${step.name}...} must be the last segment` };
    steps.push(step);
  }
  return { ok: true, steps };
}

function parseStep(part: string): Step | string {
  const step = parsePatternSegment(part);
  if (typeof step === 'string' || step.kind !== 'literal') return step;
  const flaw = segmentFlaw(part);
  return flaw === null ? step : `it ${flaw}`;
}

/** Puts captures into a template whose names were all captured. */
export function fill(steps: readonly Step[], captures: ReadonlyMap<string, readonly string[]>): string[] {
  return steps.flatMap((step) => (step.kind === 'literal' ? [step.text] : (captures.get(step.name) ?? [])));
}
