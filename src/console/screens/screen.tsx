import { later } from '../parts/later.js';
import { Nothing, Page } from '../parts/page.js';
import { Link, useRoute } from '../router.js';
import { KeysScreen } from './keys/keys.js';
import { LeaseScreen } from './lease/lease.js';
import { Live } from './live/live.js';
import { Log } from './log/log.js';
import { Overview } from './overview/overview.js';
import { ResourceScreen } from './resource/resource.js';
import { RunScreen } from './run/run.js';
import { Runs } from './runs/runs.js';

const Reasons = later('Reason codes', () => import('./reasons/reasons.js'));
const ConflictMap = later('Conflict map', () => import('./map/map.js'));

/** The screen that the address names. */
export function Screen() {
  const route = useRoute();
  switch (route.screen) {
    case 'overview':
      return <Overview />;
    case 'live':
      return <Live />;
    case 'runs':
      return <Runs />;
    case 'run':
      return <RunScreen key={route.id} id={route.id} />;
    case 'lease':
      return <LeaseScreen key={route.id} id={route.id} />;
    case 'resource':
      return <ResourceScreen />;
    case 'map':
      return <ConflictMap />;
    case 'log':
      return <Log />;
    case 'keys':
      return <KeysScreen />;
    case 'reasons':
      return <Reasons />;
    case 'nowhere':
      return (
        <Page title="Nothing here">
          <Nothing>
            The console has no such page. <Link to="/">The overview</Link> shows what is going on.
          </Nothing>
        </Page>
      );
  }
}
