import type { Pages } from '../api/pages.js';
import { ReadProblem } from './problem.js';

/** The foot of a list that is read page by page. */
export function ReadMore({ pages, what }: { readonly pages: Pages<unknown>; readonly what: string }) {
  return (
    <>
      <ReadProblem problem={pages.problem} stale={pages.rows.length > 0} />
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
