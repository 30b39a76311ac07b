import { useState } from 'preact/hooks';
import { asProblem, type Problem } from '../../api/problem.js';
import { TextField } from '../../parts/field.js';
import { ProblemNote } from '../../parts/problem.js';
import { type SignedOut, signIn } from '../../session.js';
import './sign-in.css';

/** Who are you? By a token, at the organisation's issuer, or by the one-time link that the coordinator printed. */
export function SignIn({ why }: { readonly why: SignedOut }) {
  const [token, setToken] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await signIn({ token: token.trim() });
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const shown = problem ?? why.problem;
  return (
    <main class="sign-in" id="main">
      <div class="card">
        <h1>Writ</h1>
        <p class="about">Who may write what, right now.</p>
        {shown !== null && <ProblemNote problem={shown} what="You are not signed in:" />}
        {why.oidc && (
          <>
            <a class="button primary" href={`/auth/oidc/start?${returnTo()}`}>
              Sign in with your organisation
            </a>
            <p class="or">or</p>
          </>
        )}
        <form onSubmit={(event) => void submit(event)}>
          <TextField
            label="Token"
            type="password"
            name="token"
            value={token}
            onChange={setToken}
            required
            autoFocus
            hint="A bearer token of a principal. It is sent once, and kept sealed in a cookie that scripts cannot read."
          />
          <button type="submit" class="primary" disabled={busy || token.trim() === ''}>
            {busy ? 'Signing in…' : 'Sign in'}
          </button>
        </form>
        <p class="hint">
          On your own machine, <code>npm start</code> prints a one-time link that signs you in.{' '}
          <code>dev-tokens.json</code> in its data directory has a token for each role.
        </p>
      </div>
    </main>
  );
}

/** Where to come back to. */
const returnTo = (): string =>
  new URLSearchParams({ return_to: window.location.pathname + window.location.search }).toString();
