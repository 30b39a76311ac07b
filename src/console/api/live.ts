import { useEffect, useRef } from 'preact/hooks';
import { learnDatabaseTime } from '../clock.js';
import { millisOf } from '../pure/moments.js';
import { createStore, useStore } from '../store.js';
import { addressOfCall } from './client.js';
import type { LogEvent } from './shapes.js';

/**
 * What happens, as it happens: one connection for the whole page (server-sent events of the log). Screens are told that
 * something has changed and read it again.
 */
export type LiveState = 'off' | 'connecting' | 'live' | 'paused' | 'lost';

export const liveState = createStore<LiveState>('off');
export const livePaused = createStore(false);

type Listener = (events: readonly LogEvent[]) => void;
const listeners = new Set<Listener>();

/** Events that arrive together are told together: a burst of thousands is one piece of news. */
const GATHER_MS = 250;
const MAX_GATHERED = 2_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

let gathered: LogEvent[] = [];
let gathering = 0;

function tell(): void {
  gathering = 0;
  const events = gathered;
  gathered = [];
  for (const listener of [...listeners]) listener(events);
}

function take(data: string): void {
  const event = JSON.parse(data) as LogEvent;
  if (gathered.length < MAX_GATHERED) gathered.push(event);
  if (gathering === 0) gathering = window.setTimeout(tell, GATHER_MS);
  const at = millisOf(event.time);
  // An event that was just written tells the time; one that is read again after a gap tells an old one.
  if (at !== null && at > databaseMsSeen) {
    databaseMsSeen = at;
    if (isCaughtUp) learnDatabaseTime(at);
  }
}
let databaseMsSeen = 0;
let isCaughtUp = false;

/** Keeps the connection while the page is there; a namespace that one may not follow has none. */
export function useLiveConnection(namespace: string, may: boolean): void {
  const paused = useStore(livePaused);
  useEffect(() => {
    if (!may) {
      liveState.set('off');
      return;
    }
    if (paused) {
      liveState.set('paused');
      return;
    }
    let source: EventSource | null = null;
    let retry = 0;
    let wait = FIRST_RETRY_MS;
    const connect = () => {
      liveState.set('connecting');
      source = new EventSource(addressOfCall('/v1/events/stream', { namespace }));
      source.onopen = () => {
        wait = FIRST_RETRY_MS;
        isCaughtUp = true;
        liveState.set('live');
        // Whatever happened while nobody listened is read again.
        for (const listener of [...listeners]) listener([]);
      };
      source.onmessage = ({ data }) => take(data);
      // The coordinator says why it ends the stream. What it tells after that is read again from its beginning.
      source.addEventListener('problem', () => {
        source?.close();
        isCaughtUp = false;
        liveState.set('lost');
        retry = window.setTimeout(connect, wait);
        wait = Math.min(wait * 2, MAX_RETRY_MS);
      });
      source.onerror = () => {
        isCaughtUp = false;
        liveState.set('lost');
        if (source?.readyState !== EventSource.CLOSED) return;
        retry = window.setTimeout(connect, wait);
        wait = Math.min(wait * 2, MAX_RETRY_MS);
      };
    };
    connect();
    return () => {
      window.clearTimeout(retry);
      source?.close();
    };
  }, [namespace, may, paused]);
}

/** Hears of events until it is told not to. No events: something may have been missed. */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** The same, while the component is there. */
export function useEvents(listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => onEvents((events) => latest.current(events)), []);
}
