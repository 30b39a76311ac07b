import { useEffect, useState } from 'preact/hooks';
import { call, csrf, signedOut } from './api/client.js';
import { asProblem, Problem } from './api/problem.js';
import { createStore, useStore } from './store.js';

/** Who is signed in. */
export interface Session {
  readonly name: string;
}

/** What a session's endpoint answers. */
interface SessionAnswer {
  readonly csrf: string;
  readonly principal: { readonly name: string };
}

/** How one can sign in, and why it did not work. */
export interface SignedOut {
  /** Whether one can at the organisation's provider. */
  readonly oidc: boolean;
  readonly problem: Problem | null;
}

export type SessionState =
  | { readonly is: 'asking' }
  | { readonly is: 'in'; readonly session: Session }
  | { readonly is: 'out'; readonly why: SignedOut };

export const session = createStore<SessionState>({ is: 'asking' });

function entered({ csrf: value, principal }: SessionAnswer): void {
  csrf.set(value);
  session.set({ is: 'in', session: { name: principal.name } });
}

function left(problem: Problem, tell: boolean): void {
  csrf.set('');
  const before = session.get();
  // An answer that did not come does not say that one cannot.
  const oidc = problem.more.oidc === true || (before.is === 'out' && before.why.oidc);
  session.set({ is: 'out', why: { oidc, problem: tell ? problem : null } });
}

/** Signs in by a token or a one-time code; throws a Problem. */
export async function signIn(by: { readonly token: string } | { readonly code: string }): Promise<void> {
  entered((await call<SessionAnswer>('POST', '/auth/session', { body: by, namespace: null })).value);
}

export async function signOut(): Promise<void> {
  const end = () => call('DELETE', '/auth/session', { namespace: null });
  try {
    // In another tab somebody may have signed in anew: then this one learns of that first.
    await end().catch(() => look(false).then(end));
    await look(false);
  } catch {
    await look(true);
  }
}

async function look(tell: boolean): Promise<void> {
  try {
    entered((await call<SessionAnswer>('GET', '/auth/session', { namespace: null })).value);
  } catch (error) {
    const problem = asProblem(error);
    left(problem, tell || !problem.isSignedOut);
  }
}

/** What the address brings along of a sign-in; it leaves the address bar, and with it the history, at once. */
function takeFragment(): { readonly code: string | null; readonly failed: Problem | null } {
  const fragment = new URLSearchParams(window.location.hash.slice(1));
  const code = fragment.get('code');
  const reason = /^[A-Z_]{1,64}$/.exec(fragment.get('sign-in-failed') ?? '')?.[0];
  if (code !== null || reason !== undefined)
    window.history.replaceState(null, '', window.location.pathname + window.location.search);
  const told = 'The sign-in at your organisation came to nothing; the log of the coordinator says why.';
  return { code, failed: reason === undefined ? null : new Problem(0, reason, told) };
}

/** Nobody is signed in, and this is why. */
async function leftBy(problem: Problem): Promise<void> {
  await look(true);
  const state = session.get();
  if (state.is === 'out') session.set({ is: 'out', why: { ...state.why, problem } });
}

/** Who is signed in, asked once and again whenever the coordinator says that nobody is. */
export function useSession(): SessionState {
  const [began, setBegan] = useState(false);
  useEffect(() => {
    if (began) return;
    setBegan(true);
    const { code, failed } = takeFragment();
    if (code !== null) signIn({ code }).catch((error) => leftBy(asProblem(error)));
    else if (failed !== null) void leftBy(failed);
    else void look(false);
    signedOut.subscribe(() => void look(true));
  }, [began]);
  return useStore(session);
}
