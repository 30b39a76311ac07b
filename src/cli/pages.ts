import type { PageRequest } from '../gen/writ/v1/types.js';

const PAGE_SIZE = 500;
/** What a terminal can still be of use for; a machine should page itself. */
const MAX_ROWS = 10_000;

/** All rows of a paged list, up to `most`. */
export async function pages<A extends { readonly nextPageToken: string }, R>(
  read: (page: PageRequest) => Promise<A>,
  rowsOf: (answer: A) => readonly R[],
  most = MAX_ROWS,
): Promise<R[]> {
  const rows: R[] = [];
  let pageToken = '';
  do {
    const answer = await read({ pageSize: Math.min(PAGE_SIZE, most - rows.length), pageToken });
    rows.push(...rowsOf(answer));
    pageToken = answer.nextPageToken;
  } while (pageToken !== '' && rows.length < most);
  return rows;
}
