import { useEffect, useRef } from 'preact/hooks';
import { go, hrefOf } from '../router.js';

/** What the keyboard can do, in the order in which it is told. */
export interface Shortcut {
  /** One key, or two in a row: `g l`. */
  readonly keys: string;
  readonly does: string;
  readonly run: () => void;
}

const SEQUENCE_MS = 1_200;

/** Whether the key belongs to a field that somebody types into. */
function isTyping(target: EventTarget | null): boolean {
  const element = target instanceof Element ? (target.shadowRoot?.activeElement ?? target) : null;
  return element !== null && element.closest('input, textarea, select, [contenteditable="true"], .cm-editor') !== null;
}

/** Hears the shortcuts; none while somebody types, a dialog is open, or a modifier is held. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  useEffect(() => {
    let first = '';
    let forget = 0;
    const hear = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const pressed = first === '' ? event.key : `${first} ${event.key}`;
      first = '';
      window.clearTimeout(forget);
      const shortcut = latest.current.find(({ keys }) => keys === pressed);
      if (shortcut !== undefined) {
        event.preventDefault();
        shortcut.run();
      } else if (latest.current.some(({ keys }) => keys.startsWith(`${pressed} `))) {
        first = pressed;
        forget = window.setTimeout(() => {
          first = '';
        }, SEQUENCE_MS);
      }
    };
    document.addEventListener('keydown', hear);
    return () => {
      document.removeEventListener('keydown', hear);
      window.clearTimeout(forget);
    };
  }, []);
}

export const goTo = (path: string) => (): void => go(hrefOf(path));
