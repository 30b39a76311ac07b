import { useWaiters } from '../api/waiters.js';
import type { Waiter, WaitsFor } from '../pure/waits.js';
import { waitersBehind } from '../pure/waits.js';
import { counted } from '../pure/words.js';
import { Foreign, Resource, RunLink } from './text.js';

const SHOWN = 6;

/** Who waits for what would end, and would be granted by it; nothing while that is not known, or nobody does. */
export function Behind({ ends }: { readonly ends: (holder: WaitsFor) => boolean }) {
  const { value } = useWaiters();
  if (value === undefined) return null;
  const { next, others } = waitersBehind(value.waiters, ends);
  const atLeast = value.complete ? '' : 'at least ';
  if (next.length + others.length === 0)
    return <li>{value.complete ? 'Nobody waits for it.' : 'None of those who have waited longest waits for it.'}</li>;
  return (
    <>
      {next.length > 0 && (
        <li>
          Next in turn, and granted by this unless a freeze or a lock delay keeps them ({atLeast}
          {counted(next.length, 'request')}):
          <Listed waiters={next} />
        </li>
      )}
      {others.length > 0 && (
        <li>
          Nearer then, and still behind others ({atLeast}
          {counted(others.length, 'request')}):
          <Listed waiters={others} />
        </li>
      )}
    </>
  );
}

function Listed({ waiters }: { readonly waiters: readonly Waiter[] }) {
  return (
    <ul class="behind">
      {waiters.slice(0, SHOWN).map(({ leaseId, runId, purpose, resources }) => (
        <li key={leaseId}>
          run <RunLink id={runId} /> for <Resource name={resources[0] ?? ''} />
          {resources.length > 1 && <span class="aside"> and {resources.length - 1} more</span>}
          {purpose !== '' && <Foreign text={purpose} class="clamped aside" />}
        </li>
      ))}
      {waiters.length > SHOWN && <li class="aside">and {waiters.length - SHOWN} more</li>}
    </ul>
  );
}
