import { useEffect, useState } from 'preact/hooks';
import { useLiveConnection } from '../api/live.js';
import { type Principal, usePrincipal } from '../principal.js';
import { Link, useNamespace, usePath, useRoute } from '../router.js';
import { Screen } from '../screens/screen.js';
import { type Session, signOut } from '../session.js';
import { useStore } from '../store.js';
import { nextTheme, theme } from '../theme.js';
import { FIND_ID, Find } from './find.js';
import { Help } from './help.js';
import { LiveLight, togglePause } from './live-light.js';
import { NamespaceSwitch } from './namespaces.js';
import { DESTINATIONS, type Destination } from './navigation.js';
import { goTo, type Shortcut, useShortcuts } from './shortcuts.js';

const THEME_WORDS = { system: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' } as const;

/** What stands around every screen. */
export function Shell({ session }: { readonly session: Session }) {
  const namespace = useNamespace();
  const path = usePath();
  const principal = usePrincipal(namespace, session.name);
  const [helpOpen, setHelpOpen] = useState(false);
  const [menuOpen, setMenuOpen] = useState(false);
  const destinations = allowed(principal);
  const shortcuts = shortcutsOf(destinations, () => setHelpOpen(true));
  useShortcuts(shortcuts);
  useLiveConnection(namespace, principal?.may?.includes('AuditService/ListEvents') ?? false);
  // Whoever has gone somewhere is done with the menu.
  useEffect(() => setMenuOpen(false), [path]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <Link to="/" class="brand" title="Overview">
          Writ
        </Link>
        <NamespaceSwitch />
        <Find />
        <LiveLight />
        <button
          type="button"
          class="quiet menu-button"
          aria-expanded={menuOpen}
          aria-controls="navigation"
          onClick={() => setMenuOpen(!menuOpen)}
        >
          Menu
        </button>
      </header>
      <div class={menuOpen ? 'side open' : 'side'} id="navigation">
        <nav aria-label="Screens">
          <Destinations of={destinations} />
        </nav>
        <Person session={session} principal={principal} onHelp={() => setHelpOpen(true)} />
      </div>
      <div class="content">{principal !== null && <Screen />}</div>
      {helpOpen && <Help shortcuts={shortcuts} onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

const allowed = (principal: Principal | null): readonly Destination[] =>
  DESTINATIONS.filter(({ needs }) => needs.length === 0 || needs.some((method) => principal?.may?.includes(method)));

function shortcutsOf(destinations: readonly Destination[], help: () => void): readonly Shortcut[] {
  return [
    {
      keys: '/',
      does: 'Find a resource, a run, a lease or a request',
      run: () => document.getElementById(FIND_ID)?.focus(),
    },
    ...destinations.map(({ key, name, path }) => ({ keys: key, does: name, run: goTo(path) })),
    { keys: 'p', does: 'Pause, or resume, what is live', run: togglePause },
    { keys: 't', does: 'Light, dark, or as the system', run: nextTheme },
    { keys: '?', does: 'This list', run: help },
  ];
}

function Destinations({ of }: { readonly of: readonly Destination[] }) {
  const { screen } = useRoute();
  return (
    <ul>
      {of.map(({ path, name, screens }) => (
        <li key={path}>
          <Link to={path} current={screens.includes(screen)}>
            {name}
          </Link>
        </li>
      ))}
    </ul>
  );
}

interface PersonProps {
  readonly session: Session;
  readonly principal: Principal | null;
  readonly onHelp: () => void;
}

function Person({ session, principal, onHelp }: PersonProps) {
  const chosen = useStore(theme);
  const roles = principal?.roles ?? [];
  return (
    <section class="person" aria-label="You">
      <p>
        <bdi class="person-name">{principal?.name ?? session.name}</bdi>
        <span class="aside">{roles.length === 0 ? 'no roles here' : roles.join(', ')}</span>
      </p>
      <div class="actions">
        <button type="button" class="quiet small" onClick={nextTheme} title="Light, dark, or as the system">
          {THEME_WORDS[chosen]}
        </button>
        <button type="button" class="quiet small" onClick={onHelp}>
          Keyboard
        </button>
        <button type="button" class="quiet small" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </section>
  );
}
