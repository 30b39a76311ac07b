import { existsSync } from 'node:fs';

const SOURCES = new URL('../../src/', import.meta.url).href;
const BUILT = new URL('../../dist/', import.meta.url);

/** A module of the sources, as the build has it. */
export async function resolve(specifier, context, next) {
  const url = URL.canParse(specifier, context.parentURL) ? new URL(specifier, context.parentURL).href : '';
  if (!url.startsWith(SOURCES) || !url.endsWith('.js')) return next(specifier, context);
  const built = new URL(url.slice(SOURCES.length), BUILT);
  if (!existsSync(built)) throw new Error(`${built.pathname} is missing: run \`npm run build\` first (npm test does)`);
  return next(built.href, context);
}
