import { PathIndex } from './path-index.js';
import { parseTemplate, type Step } from './template.js';

/** A set of resources, written as in the conflict map: `release/{env}`, `route/{name...}`. */
export class ResourcePattern {
  private constructor(
    readonly text: string,
    private readonly index: PathIndex<{ readonly steps: readonly Step[] }>,
  ) {}

  /** Throws a TypeError that says what is wrong with the text. */
  static of(text: string): ResourcePattern {
    const parsed = parseTemplate(text);
    if (!parsed.ok) throw new TypeError(`${JSON.stringify(text)} is no pattern of resources: ${parsed.reason}`);
    const index = new PathIndex<{ readonly steps: readonly Step[] }>();
    index.add(parsed);
    return new ResourcePattern(text, index);
  }

  matches(resource: string): boolean {
    return this.index.find(resource.split('/')) !== null;
  }
}
