import type { Output } from './output.js';

/**
 * In patterns a star is a letter like any other, and there are resources with one in their names. Who means a wildcard by it
 * freezes, or allows, next to nothing, and a brake that stops too little is not noticed: so it is said.
 */
export function noteStars(out: Output, patterns: readonly string[]): void {
  const starred = patterns.find((pattern) => pattern.includes('*'));
  if (starred === undefined) return;
  out.note(`"${starred}": * is no wildcard and stands for itself. {name} is any one segment, {name...} all the rest.`);
}
