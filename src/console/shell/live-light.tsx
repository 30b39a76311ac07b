import { type LiveState, livePaused, liveState } from '../api/live.js';
import { useStore } from '../store.js';

const WORDS: Readonly<Record<LiveState, string>> = {
  off: 'Polling',
  connecting: 'Connecting',
  live: 'Live',
  paused: 'Paused',
  lost: 'Reconnecting',
};

const ABOUT: Readonly<Record<LiveState, string>> = {
  off: 'Your roles may not follow the log here; the screens are read again every few seconds.',
  connecting: 'Connecting to the log.',
  live: 'Changes are shown as they happen.',
  paused: 'What is shown is as it was when it was paused.',
  lost: 'The connection to the log is lost; it is tried again.',
};

export const togglePause = (): void => livePaused.set(!livePaused.get());

/** Whether what is shown is what is, and the way to make it stand still. */
export function LiveLight() {
  const state = useStore(liveState);
  const paused = useStore(livePaused);
  return (
    <div class="live-light">
      <output class={`light light-${state}`} title={ABOUT[state]}>
        {WORDS[state]}
      </output>
      <button type="button" class="quiet small" aria-pressed={paused} onClick={togglePause}>
        {paused ? 'Resume' : 'Pause'}
      </button>
    </div>
  );
}
