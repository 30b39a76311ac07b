import { segmentFlaw } from './segment.js';

/** A step of a template: a literal, one captured segment, or all that remains (one segment at least). */
export type Step =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'capture'; readonly name: string }
  | { readonly kind: 'rest'; readonly name: string };

export type ParsedTemplate =
  | { readonly ok: true; readonly steps: readonly Step[] }
  | { readonly ok: false; readonly reason: string };

const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

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
  if (!/[{}]/.test(part)) {
    const flaw = segmentFlaw(part);
    return flaw === null ? { kind: 'literal', text: part } : `it ${flaw}`;
  }
  const inner = /^\{([^{}]*)\}$/.exec(part)?.[1];
  if (inner === undefined) return `${JSON.stringify(part)}: a capture is a whole segment, {name} or {name...}`;
  const rest = inner.endsWith('...');
  const name = rest ? inner.slice(0, -3) : inner;
  if (!NAME.test(name))
    return `${JSON.stringify(part)}: a capture's name has letters, digits, "_" and "-", begins with a letter or "_", and is at most 64 long`;
  return { kind: rest ? 'rest' : 'capture', name };
}

/** Puts captures into a template whose names were all captured. */
export function fill(steps: readonly Step[], captures: ReadonlyMap<string, readonly string[]>): string[] {
  return steps.flatMap((step) => (step.kind === 'literal' ? [step.text] : (captures.get(step.name) ?? [])));
}
