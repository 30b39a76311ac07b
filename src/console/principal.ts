import { useEffect } from 'preact/hooks';
import { get } from './api/client.js';
import type { Answer } from './api/shapes.js';
import { createStore, useStore } from './store.js';

/** Who calls, and what they may do in the namespace. */
export type Principal = Answer<'Principal'>;

const principal = createStore<{ readonly namespace: string; readonly is: Principal } | null>(null);

/** Asks who one is in a namespace, anew when another person is signed in; null until that is known. */
export function usePrincipal(namespace: string, person: string): Principal | null {
  const known = useStore(principal);
  useEffect(() => {
    const aborter = new AbortController();
    get<Principal>('/v1/principal', { namespace, signal: aborter.signal })
      .then((is) => principal.set({ namespace, is }))
      .catch(() => undefined);
    return () => aborter.abort();
  }, [namespace, person]);
  return known?.namespace === namespace ? known.is : null;
}

/**
 * Whether one may call a method of the contract, such as `RunService/StopRun`. It decides what is offered, and nothing
 * else: the coordinator decides what is done.
 */
export function useMay(): (method: string) => boolean {
  const known = useStore(principal);
  return (method) => known?.is.may?.includes(method) ?? false;
}
