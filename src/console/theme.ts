import { createStore } from './store.js';

/** Light or dark: as the system has it, until somebody chooses. */
export type Theme = 'system' | 'light' | 'dark';

const KEY = 'writ-theme';
const ORDER: readonly Theme[] = ['system', 'light', 'dark'];

function remembered(): Theme {
  const value = window.localStorage.getItem(KEY);
  return ORDER.find((theme) => theme === value) ?? 'system';
}

export const theme = createStore<Theme>(remembered());

function show(): void {
  const chosen = theme.get();
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
show();
theme.subscribe(show);

export function nextTheme(): void {
  const next = ORDER[(ORDER.indexOf(theme.get()) + 1) % ORDER.length] ?? 'system';
  theme.set(next);
  if (next === 'system') window.localStorage.removeItem(KEY);
  else window.localStorage.setItem(KEY, next);
}
