import type { WritClient } from '../clients/common/connect.js';
import { CliError } from './cli.js';
import { EXIT } from './exit-codes.js';
import { unlessForbidden } from './unless-forbidden.js';

/** What an id is of. */
export type IdOf = 'run' | 'lease';

const BEGINNING = /^[0-9a-f]{4,31}$/;

/**
 * The whole id of a run or a lease that begins so, as screens shorten them. A text that is no such beginning is returned as
 * it is: it may be an id of another form. Only reads take one; what ends something wants the whole id.
 */
export async function wholeId(writ: WritClient, text: string, of: readonly IdOf[]): Promise<string> {
  if (!BEGINNING.test(text)) return text;
  const none = { runIds: [], leaseIds: [], more: false };
  const { runIds, leaseIds, more } = await unlessForbidden(writ.audit.findIds({ beginning: text }), none);
  const found = [
    ...(of.includes('run') ? runIds.map((id) => ['run', id] as const) : []),
    ...(of.includes('lease') ? leaseIds.map((id) => ['lease', id] as const) : []),
  ];
  if (found.length > 1) {
    const told = found.map(([what, id]) => `${what} ${id}`).join(', ');
    throw new CliError(
      EXIT.notFound,
      `Several begin with ${text}: ${told}${more ? ', …' : ''}.`,
      'Say more of the id.',
    );
  }
  return found[0]?.[1] ?? text;
}
