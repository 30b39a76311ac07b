import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { useInterval } from '../clock.js';
import { useNamespace } from '../router.js';
import { useStore } from '../store.js';
import { liveState, useEvents } from './live.js';
import { asProblem, type Problem } from './problem.js';
import type { LogEvent } from './shapes.js';

/** What a screen shows of something that it has read. */
export interface Data<T> {
  /** Absent: it was not read yet. It stays when reading it again fails. */
  readonly value: T | undefined;
  readonly problem: Problem | null;
  readonly loading: boolean;
  readonly reload: () => void;
}

export interface DataOptions {
  /** Whether events make it worth reading again; default: every event does. */
  readonly touchedBy?: (event: LogEvent) => boolean;
  /** Not more often than this, however much happens. Default: 1 s. */
  readonly restMs?: number;
  /** False: it is read only when its key changes, or somebody asks. Default: true. */
  readonly live?: boolean;
  /** False: it is the same in every namespace. Default: true. */
  readonly ofNamespace?: boolean;
}

const REST_MS = 1_000;
/** How often it is read where no events come: also what changes by time alone, such as an expiry, is seen. */
const POLL_MS = 5_000;
/** After a reading that failed in passing. */
export const RETRY_MS = 5_000;

/**
 * Reads something of the namespace that is looked at, and reads it again when events say that it may have changed. `name`
 * says what is read: an answer to an older question, or about another namespace, is dropped, and null asks nothing.
 */
export function useData<T>(
  name: string | null,
  read: (signal: AbortSignal) => Promise<T>,
  options: DataOptions = {},
): Data<T> {
  const { touchedBy, restMs = REST_MS, live = true, ofNamespace = true } = options;
  const namespace = useNamespace();
  const key = name === null ? null : `${ofNamespace ? namespace : ''} ${name}`;
  const [state, setState] = useState<Omit<Data<T>, 'reload'> & { readonly key: string | null }>({
    key: null,
    value: undefined,
    problem: null,
    loading: key !== null,
  });
  const latest = useRef(read);
  latest.current = read;
  const reading = useRef<AbortController | null>(null);
  const again = useRef(0);
  const lastAt = useRef(0);

  const readNow = useCallback(async () => {
    window.clearTimeout(again.current);
    again.current = 0;
    reading.current?.abort();
    if (key === null) return;
    const aborter = new AbortController();
    reading.current = aborter;
    lastAt.current = performance.now();
    setState((before) => ({
      ...before,
      loading: true,
      ...(before.key !== key && { value: undefined, problem: null }),
    }));
    try {
      const value = await latest.current(aborter.signal);
      if (!aborter.signal.aborted) setState({ key, value, problem: null, loading: false });
    } catch (error) {
      if (aborter.signal.aborted) return;
      const problem = asProblem(error);
      setState((before) => ({ ...before, key, problem, loading: false }));
      // No event may come for long: what failed in passing is not left standing as it is.
      if (problem.mayPass) again.current = window.setTimeout(() => void readNow(), RETRY_MS);
    } finally {
      if (reading.current === aborter) reading.current = null;
    }
  }, [key]);

  useEffect(() => {
    void readNow();
    return () => {
      reading.current?.abort();
      window.clearTimeout(again.current);
      again.current = 0;
    };
  }, [readNow]);

  const readSoon = useCallback(() => {
    if (again.current !== 0) return;
    const arm = (waitMs: number) => {
      again.current = window.setTimeout(() => {
        // A reading that takes long is not cut off by the next one: under many events none would ever end.
        if (reading.current === null) void readNow();
        else arm(restMs);
      }, waitMs);
    };
    arm(Math.max(0, restMs - (performance.now() - lastAt.current)));
  }, [readNow, restMs]);

  useEvents((events) => {
    if (!live || key === null) return;
    if (events.length === 0 || touchedBy === undefined || events.some(touchedBy)) readSoon();
  });
  const connection = useStore(liveState);
  const polls = live && connection === 'off';
  useInterval(readSoon, polls ? Math.max(POLL_MS, restMs) : null);
  return {
    value: state.key === key ? state.value : undefined,
    problem: state.key === key ? state.problem : null,
    loading: state.loading || (key !== null && state.key !== key),
    reload: () => void readNow(),
  };
}
