import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Query } from '../pure/paths.js';
import { useNamespace } from '../router.js';
import { get } from './client.js';
import { RETRY_MS } from './data.js';
import { useEvents } from './live.js';
import { asProblem, type Problem } from './problem.js';
import type { LogEvent, Page } from './shapes.js';

/** A list that is read page by page, as far as somebody wants to see it. */
export interface Pages<T> {
  readonly rows: readonly T[];
  readonly more: boolean;
  readonly loading: boolean;
  readonly problem: Problem | null;
  readonly readMore: () => void;
}

interface PagesOptions<T> {
  readonly rowsOf: (page: Page) => readonly T[];
  readonly pageSize?: number;
  /** Events that make the first page worth reading again, while no more than that was read. */
  readonly touchedBy?: (event: LogEvent) => boolean;
}

const PAGE_SIZE = 100;
/** Nobody reads more than this on one page. */
const MAX_ROWS = 20_000;
const REST_MS = 1_000;

interface State<T> {
  readonly key: string;
  readonly rows: readonly T[];
  readonly next: string;
  readonly loading: boolean;
  readonly problem: Problem | null;
}

/** `path` and `query` say what is read of the namespace that is looked at; null: nothing. */
export function usePages<T>(path: string | null, query: Query, options: PagesOptions<T>): Pages<T> {
  const { pageSize = PAGE_SIZE } = options;
  const namespace = useNamespace();
  const key = path === null ? '' : JSON.stringify([namespace, path, query]);
  const latest = useRef({ path, query, options });
  latest.current = { path, query, options };
  const [state, setState] = useState<State<T>>({ key, rows: [], next: '', loading: true, problem: null });
  const reading = useRef<AbortController | null>(null);
  const soon = useRef(0);

  const read = useCallback(
    async (token: string) => {
      reading.current?.abort();
      window.clearTimeout(soon.current);
      soon.current = 0;
      const { path: wanted, query: filter, options: how } = latest.current;
      if (wanted === null) return;
      const aborter = new AbortController();
      reading.current = aborter;
      setState((before) => ({ ...before, ...(before.key !== key && { key, rows: [], next: '' }), loading: true }));
      try {
        const page = await get<Page>(wanted, {
          signal: aborter.signal,
          query: { ...filter, page_size: String(pageSize), page_token: token },
        });
        if (aborter.signal.aborted) return;
        const found = how.rowsOf(page);
        setState((before) => ({
          key,
          rows: token === '' ? found : [...before.rows, ...found],
          next: page.nextPageToken ?? '',
          loading: false,
          problem: null,
        }));
      } catch (error) {
        if (aborter.signal.aborted) return;
        const problem = asProblem(error);
        setState((before) => ({ ...before, key, loading: false, problem }));
        if (!problem.mayPass) return;
        window.clearTimeout(soon.current);
        soon.current = window.setTimeout(() => {
          soon.current = 0;
          void read(token);
        }, RETRY_MS);
      } finally {
        if (reading.current === aborter) reading.current = null;
      }
    },
    [key, pageSize],
  );

  useEffect(() => {
    void read('');
    return () => {
      reading.current?.abort();
      window.clearTimeout(soon.current);
      soon.current = 0;
    };
  }, [read]);

  useEvents((events) => {
    const { touchedBy } = latest.current.options;
    if (touchedBy === undefined || soon.current !== 0 || state.rows.length > pageSize) return;
    if (events.length > 0 && !events.some(touchedBy)) return;
    const arm = () => {
      soon.current = window.setTimeout(() => {
        if (reading.current !== null) return arm();
        soon.current = 0;
        void read('');
      }, REST_MS);
    };
    arm();
  });

  const { rows, next, loading, problem } = state;
  const isOld = state.key !== key;
  return {
    rows: isOld ? [] : rows,
    more: !isOld && next !== '' && rows.length < MAX_ROWS,
    loading: isOld || loading,
    problem: isOld ? null : problem,
    readMore: () => {
      if (!loading && next !== '') void read(next);
    },
  };
}
