import { useMemo } from 'preact/hooks';
import type { Lease } from '../../api/shapes.js';
import { useWaiters } from '../../api/waiters.js';
import { Nothing } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Foreign, LeaseLink, Resource, RunLink, When } from '../../parts/text.js';
import { type Standing, type WaitNode, waitForest } from '../../pure/waits.js';
import { counted } from '../../pure/words.js';

/** More trees than these are not read by anybody. */
const SHOWN = 200;

/** What others wait for, and who waits for those. */
export function Waiting({ leases }: { readonly leases: readonly Lease[] }) {
  const { value, problem } = useWaiters();
  const forest = useMemo(() => {
    const shown = new Set(leases.map(({ leaseId }) => leaseId));
    return waitForest(value?.waiters ?? []).filter((root) => isAmong(root, shown));
  }, [value, leases]);
  if (value === undefined) return <ReadProblem problem={problem} stale={false} />;
  if (forest.length === 0) return <Nothing>Nobody waits for anybody.</Nothing>;
  return (
    <ul class="body wait-forest">
      {forest.slice(0, SHOWN).map((root) => (
        <WaitTree key={root.leaseId} node={root} />
      ))}
      {forest.length > SHOWN && <li class="aside">and {forest.length - SHOWN} more that are waited for</li>}
    </ul>
  );
}

const isAmong = (node: WaitNode, shown: ReadonlySet<string>): boolean =>
  shown.has(node.leaseId) || node.waitedForBy.some((child) => isAmong(child, shown));

const TONES: Readonly<Record<Standing, string>> = {
  holds: 'tone-good',
  waits: 'tone-warn',
  'in doubt': 'tone-bad',
  'lock delay': 'tone-warn',
};

function WaitTree({ node }: { readonly node: WaitNode }) {
  const { leaseId, runId, purpose, standing, waiter, meets, waitedForBy, behind } = node;
  return (
    <li>
      <div class="wait-node">
        <span class={TONES[standing]}>{standing}</span>
        {runId !== '' && <RunLink id={runId} />}
        <span class="aside">
          lease <LeaseLink id={leaseId} />
        </span>
        {meets !== null && (
          <span>
            on <Resource name={meets.resource} />
            {meets.rule !== '' && <span class="aside"> by {meets.rule}</span>}
          </span>
        )}
        {waiter !== null && waiter.since !== '' && <When at={waiter.since} />}
        {behind > 0 && <span class="aside">{counted(behind, 'request')} behind it</span>}
        {purpose !== '' && <Foreign text={purpose} class="clamped aside" />}
      </div>
      {waitedForBy.length > 0 && (
        <ul>
          {waitedForBy.map((child) => (
            <WaitTree key={`${leaseId} ${child.leaseId} ${child.meets?.resource}`} node={child} />
          ))}
        </ul>
      )}
    </li>
  );
}
