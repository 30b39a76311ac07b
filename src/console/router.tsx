import type { ComponentChildren } from 'preact';
import { addressOf, DEFAULT_NAMESPACE, type Query, type Route, routeOf } from './pure/paths.js';
import { createStore, useStore } from './store.js';

/** Where the page is: the address bar is the only place that knows. */
interface Place {
  readonly path: string;
  readonly search: string;
}

const here = (): Place => ({ path: window.location.pathname, search: window.location.search });
const place = createStore(here());
window.addEventListener('popstate', () => place.set(here()));

/** Goes to an address of the console. `replace`: the one before is not to come back by the back button. */
export function go(address: string, replace = false): void {
  if (replace) window.history.replaceState(null, '', address);
  else {
    window.history.pushState(null, '', address);
    window.scrollTo(0, 0);
  }
  place.set(here());
}

export const useRoute = (): Route => routeOf(useStore(place).path);

export const usePath = (): string => useStore(place).path;

export const currentNamespace = (): string =>
  new URLSearchParams(place.get().search).get('namespace') || DEFAULT_NAMESPACE;

/** The namespace that is looked at, by the address. */
export function useNamespace(): string {
  return new URLSearchParams(useStore(place).search).get('namespace') || DEFAULT_NAMESPACE;
}

/** The address of a path in the namespace that is looked at. */
export const hrefOf = (path: string, query: Query = {}): string => addressOf(path, currentNamespace(), query);

/** One parameter of the address, and how to change it: filters live there, so that a screen can be sent to somebody. */
export function useParameter(name: string): [string, (value: string) => void] {
  const value = new URLSearchParams(useStore(place).search).get(name) ?? '';
  return [value, (next) => changeParameters({ [name]: next })];
}

export function changeParameters(changes: Readonly<Record<string, string>>): void {
  const search = new URLSearchParams(place.get().search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') search.delete(name);
    else search.set(name, value);
  }
  const text = search.toString();
  go(place.get().path + (text === '' ? '' : `?${text}`), true);
}

interface LinkProps {
  readonly to: string;
  readonly query?: Query;
  readonly class?: string;
  readonly title?: string;
  readonly current?: boolean;
  readonly children: ComponentChildren;
}

/** A link within the console. */
export function Link({ to, query = {}, class: name, title, current, children }: LinkProps) {
  useNamespace();
  return (
    <a href={hrefOf(to, query)} class={name} title={title} aria-current={current === true ? 'page' : undefined}>
      {children}
    </a>
  );
}

/** Links to screens change the screen; all others, and clicks that want another tab, are the browser's. */
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null || link.target !== '' || link.hasAttribute('download')) return;
  const url = new URL(link.href, window.location.href);
  if (url.origin !== window.location.origin || routeOf(url.pathname).screen === 'nowhere') return;
  if (url.hash !== '' && url.pathname === window.location.pathname && url.search === window.location.search) return;
  event.preventDefault();
  go(url.pathname + url.search + url.hash);
});
