/** The console's own paths. The coordinator serves the page at these and at no other. */
export type Route =
  | { readonly screen: 'overview' | 'live' | 'map' | 'runs' | 'resource' | 'log' | 'keys' | 'reasons' }
  | { readonly screen: 'run' | 'lease'; readonly id: string }
  | { readonly screen: 'nowhere' };

const SCREENS = {
  '/': 'overview',
  '/live': 'live',
  '/map': 'map',
  '/runs': 'runs',
  '/resource': 'resource',
  '/log': 'log',
  '/keys': 'keys',
  '/reasons': 'reasons',
} as const;

const WITH_ID = /^\/(runs|leases)\/([0-9A-Za-z_-]{1,128})$/;

export function routeOf(path: string): Route {
  const bare = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  if (Object.hasOwn(SCREENS, bare)) return { screen: SCREENS[bare as keyof typeof SCREENS] };
  const [, list, id = ''] = WITH_ID.exec(bare) ?? [];
  if (list === undefined) return { screen: 'nowhere' };
  return { screen: list === 'runs' ? 'run' : 'lease', id };
}

export const DEFAULT_NAMESPACE = 'default';

/** Parameters of a query; what is empty is left out. */
export type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

/** An address of the console: in the namespace that is looked at, unless that is the default one. */
export function addressOf(path: string, namespace: string, query: Query = {}): string {
  const search = new URLSearchParams();
  if (namespace !== DEFAULT_NAMESPACE) search.set('namespace', namespace);
  for (const [name, value] of Object.entries(query)) {
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) {
      if (one !== '') search.append(name, one);
    }
  }
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}
