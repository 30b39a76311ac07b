import './theme.js';
import { Link, useRoute } from './router.js';
import { Screen } from './screens/screen.js';
import { SignIn } from './screens/sign-in/sign-in.js';
import { type SignedOut, useSession } from './session.js';
import { Shell } from './shell/shell.js';

/** The console: whoever is signed in sees it, anybody else is asked who they are. */
export function App() {
  const state = useSession();
  if (state.is === 'asking') return <output class="asking">Connecting…</output>;
  if (state.is === 'out') return <Outside why={state.why} />;
  return <Shell session={state.session} />;
}

/** What a code means is no secret, and nobody needs it more than who cannot sign in. */
function Outside({ why }: { readonly why: SignedOut }) {
  const { screen } = useRoute();
  if (screen !== 'reasons') return <SignIn why={why} />;
  return (
    <div class="content">
      <nav aria-label="Screens">
        <Link to="/">Sign in</Link>
      </nav>
      <Screen />
    </div>
  );
}
