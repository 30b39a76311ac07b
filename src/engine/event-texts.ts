import { createHash } from 'node:crypto';
import type { EventBody, EventKind } from '../domain/event.js';
import type { EndReason } from '../domain/lease.js';
import type { EventText } from '../storage/store.js';

/**
 * Free text in the log (A3). What people and agents write of their own (purposes, reasons) may have to be forgotten one
 * day, and the log must not change. So the body of an event holds the salted hash of such a text in its place,
 * `{"sha256":"…"}`, and the text itself stands in a table of its own that may be erased. The chain of hashes does not
 * notice; whoever still has text and salt can prove that this was it; and without the salt nobody can guess it.
 */

/** Where a body has free text, by kind of event. */
const FREE_TEXT: { readonly [kind in EventKind]?: readonly string[] } = {
  conflict_map_put: ['reason'],
  run_created: ['run', 'purpose'],
  run_state_changed: ['reason'],
  lease_queued: ['lease', 'purpose'],
  lease_granted: ['lease', 'purpose'],
  lease_ended: ['reason'],
  acquire_refused: ['purpose'],
  writes_reported: ['detail'],
  doubt_settled: ['reason'],
  credentials_revoked: ['reason'],
  signing_keys_changed: ['reason'],
  texts_erased: ['reason'],
  log_cut: ['reason'],
  override_reported: ['why'],
  write_set_taken_over: ['reason'],
  pattern_frozen: ['freeze', 'reason'],
  pattern_thawed: ['reason'],
};

/** Stands where a text was that has been erased. */
export const ERASED = '[erased]';

/** SHA-256 over the 16 bytes of the salt and the text in UTF-8, in hexadecimal digits. */
export function textDigest(salt: string, text: string): string {
  return createHash('sha256').update(salt, 'hex').update(text, 'utf8').digest('hex');
}

/** The body as it is stored, without its free text, and that text. An empty text is none, and is left as it is. */
export function withoutText(body: EventBody, salt: () => string): { body: EventBody; texts: readonly EventText[] } {
  const path = FREE_TEXT[body.kind];
  if (path === undefined || isOurs(body)) return { body, texts: NO_TEXTS };
  const texts: EventText[] = [];
  const hidden = changedAt(body, path, (text) => {
    if (typeof text !== 'string' || text === '') return text;
    const salted = salt();
    const digest = textDigest(salted, text);
    texts.push({ digest, salt: salted, text });
    return { sha256: digest };
  });
  return texts.length === 0 ? { body, texts: NO_TEXTS } : { body: hidden as EventBody, texts };
}

const NO_TEXTS: readonly EventText[] = [];

/** The reason of an end that nobody asked for is a sentence of ours; 100,000 leases may expire at once. */
const isOurs = (body: EventBody): boolean => body.kind === 'lease_ended' && !ASKED_FOR.has(body.endReason);

const ASKED_FOR: ReadonlySet<EndReason> = new Set([
  'revoked',
  'run_stopped',
  'run_ended',
  'taken_over',
  'parent_ended',
]);

/** The body with its free text, as far as that is still there. */
export function withText(body: EventBody, texts: readonly EventText[]): EventBody {
  const path = FREE_TEXT[body.kind];
  if (path === undefined) return body;
  return changedAt(body, path, (value) => {
    const digest = digestIn(value);
    return digest === null ? value : (texts.find((text) => text.digest === digest)?.text ?? ERASED);
  }) as EventBody;
}

/** The digest that stands in place of a text; null: this is none. */
export function digestIn(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return null;
  const { sha256 } = value as Fields;
  return typeof sha256 === 'string' && Object.keys(value).length === 1 ? sha256 : null;
}

type Fields = Readonly<Record<string, unknown>>;

/** A copy in which what stands at the path is changed. */
function changedAt(value: unknown, [step, ...rest]: readonly string[], change: (value: unknown) => unknown): unknown {
  if (step === undefined) return change(value);
  const fields = value as Fields;
  return { ...fields, [step]: changedAt(fields[step], rest, change) };
}
