import { invalidArgument } from '../domain/fault.js';
import { UNWELCOME } from './fields.js';

/** Lists that come in pages. */
type ListName =
  | 'checkpoints'
  | 'events'
  | 'freezes'
  | 'in-doubt'
  | 'leases'
  | 'map-versions'
  | 'namespaces'
  | 'rehearsals'
  | 'runs'
  | 'unmatched'
  | 'waiters';

/** A page of a list, and where the next one begins; empty: nowhere. */
interface Cut<T> {
  readonly items: readonly T[];
  readonly nextToken: string;
}

export interface Pages {
  /** How many rows are asked for, and the id after which they begin; empty at the first page. */
  asked(page: { readonly size: number; readonly token: string }): { size: number; after: string };
  /** Names the row after which the next page begins. */
  token(id: string): string;
  /** Of one more row than the page was asked for: there is a next page, after the last one shown. */
  cut<T>(rows: readonly T[], size: number, idOf: (row: T) => string): Cut<T>;
}

const MAX_ID_LENGTH = 1_024;

/**
 * The pages of one list. A token is the id after which its page begins, and says of which list: in another one it would
 * silently leave out all that comes before that id.
 */
export function pagesOf(list: ListName): Pages {
  const prefix = `${list} `;
  const token = (id: string) => Buffer.from(prefix + id).toString('base64url');
  return {
    token,
    asked({ size, token: given }) {
      if (size < 0 || size > 1_000)
        throw invalidArgument([{ field: 'page.page_size', description: 'must be from 1 to 1,000; 0 means 100' }]);
      return { size: size === 0 ? 100 : size, after: given === '' ? '' : idIn(given, prefix) };
    },
    cut(rows, size, idOf) {
      if (rows.length <= size) return { items: rows, nextToken: '' };
      const items = rows.slice(0, size);
      return { items, nextToken: token(idOf(items[size - 1] as (typeof rows)[number])) };
    },
  };
}

/** The id in a page token, which is one of this list. */
function idIn(token: string, prefix: string): string {
  const text = Buffer.from(token, 'base64url').toString('utf8');
  const id = text.slice(prefix.length);
  const mine = text.startsWith(prefix) && Buffer.from(text).toString('base64url') === token;
  if (!mine || id === '' || id.length > MAX_ID_LENGTH || UNWELCOME.test(id)) throw badPageToken();
  return id;
}

/** The number in the page token of a list by number; null at the first page. */
export function numberIn(after: string): number | null {
  if (after === '') return null;
  if (!/^[1-9]\d{0,14}$/.test(after)) throw badPageToken();
  return Number(after);
}

export function badPageToken() {
  return invalidArgument([
    {
      field: 'page.page_token',
      description: 'must be the next_page_token of the page before, of this list; leave it out to begin anew',
    },
  ]);
}

/** Of rows in one answer: stock clients take 4 MiB. */
const MAX_PAGE_BYTES = 1_048_576;

/** How many rows fit into one answer; at least one. */
export function fitting<T>(rows: readonly T[], bytesOf: (row: T) => number): number {
  let bytes = 0;
  const over = rows.findIndex((row) => {
    bytes += bytesOf(row);
    return bytes > MAX_PAGE_BYTES;
  });
  return over < 0 ? rows.length : Math.max(1, over);
}
