import type { Pages } from '../api/pages.js';
import { ProblemNote } from './problem.js';

/** The foot of a list that is read page by page. */
export function ReadMore({ pages, what }: { readonly pages: Pages<unknown>; readonly what: string }) {
  return (
    <>
      {pages.problem !== null && <ProblemNote problem={pages.problem} />}
      {pages.more && (
        <div class="read-more">
          <button type="button" disabled={pages.loading} onClick={pages.readMore}>
            {pages.loading ? 'Reading…' : `More ${what}`}
          </button>
        </div>
      )}
    </>
  );
}
