import type { Blocker, Freeze } from '../../api/shapes.js';
import { Nothing, Panel } from '../../parts/page.js';
import { type Column, Table } from '../../parts/table.js';
import { Countdown, Foreign, LeaseLink, Resource, RunLink, When } from '../../parts/text.js';
import { access, codeOf } from '../../pure/words.js';

interface WhoProps {
  readonly blockers: readonly Blocker[];
  readonly more: boolean;
  readonly freezes: readonly Freeze[];
  /** Absent: one may not. */
  readonly onThaw?: (freeze: Freeze) => void;
}

/** Whom a write to the resource would meet: holders, then the queue. */
export function Who({ blockers, more, freezes, onThaw }: WhoProps) {
  const holders = blockers.filter(({ waiting }) => waiting !== true);
  const queue = blockers.filter(({ waiting }) => waiting === true);
  return (
    <>
      {freezes.map((freeze) => (
        <div class="note tone-warn" key={freeze.pattern}>
          <p>
            <strong>Frozen</strong> by <Foreign text={freeze.pattern} class="mono" />: nothing is granted here
            {freeze.denyChecks === true && ', and writes of holders are denied'}.
          </p>
          <p class="aside">
            <Foreign text={freeze.frozenBy ?? ''} /> <When at={freeze.frozenAt} />{' '}
            <Foreign text={freeze.reason ?? ''} />
          </p>
          <p class="aside">
            Ends <When at={freeze.until} absent="when somebody thaws it" />.
          </p>
          {onThaw !== undefined && (
            <div>
              <button type="button" class="small" onClick={() => onThaw(freeze)}>
                Thaw…
              </button>
            </div>
          )}
        </div>
      ))}
      <Panel title="Who holds it" count={holders.length} about={more ? 'There are more than are told.' : undefined}>
        {holders.length === 0 ? (
          <Nothing>
            {freezes.length === 0 ? 'Nobody: a run that may ask for it gets it at once.' : 'Nobody; but it is frozen.'}
          </Nothing>
        ) : (
          <Table columns={COLUMNS} rows={holders} keyOf={keyOf} />
        )}
      </Panel>
      {queue.length > 0 && (
        <Panel title="Who waits" count={queue.length} about="In the order of the queue.">
          <Table columns={COLUMNS} rows={queue} keyOf={keyOf} />
        </Panel>
      )}
    </>
  );
}

const keyOf = ({ blockerRef, resource }: Blocker, index: number): string => `${blockerRef} ${resource} ${index}`;

const COLUMNS: readonly Column<Blocker>[] = [
  {
    name: 'Run',
    fit: 'tight',
    cell: ({ runId, blockerRef, leaseId }) => (
      <>
        {runId ? <RunLink id={runId} /> : <span class="mono">{blockerRef}</span>}
        {leaseId && (
          <div class="aside">
            lease <LeaseLink id={leaseId} />
          </div>
        )}
      </>
    ),
  },
  {
    name: 'Has, or wants',
    cell: ({ access: how, resource = '', scope, rule }) => (
      <>
        {access(how)} of <Resource name={resource} />
        {codeOf(scope, 'SCOPE') === 'SUBTREE' && <span class="aside"> and all below</span>}
        {rule && <div class="aside">they meet by {rule}</div>}
      </>
    ),
  },
  {
    name: 'Purpose',
    cell: ({ purpose, resolver }) => (
      <>
        <Foreign text={purpose ?? ''} class="clamped" />
        {resolver && <div class="aside">conflicts are settled by {resolver}</div>}
      </>
    ),
  },
  { name: 'Left', fit: 'tight', cell: (blocker) => <Until blocker={blocker} /> },
];

function Until({ blocker }: { readonly blocker: Blocker }) {
  if (blocker.inDoubtSince)
    return (
      <span class="tone-bad">
        in doubt since <When at={blocker.inDoubtSince} />
      </span>
    );
  if (blocker.lockDelayUntil)
    return (
      <>
        lock delay <Countdown until={blocker.lockDelayUntil} />
      </>
    );
  return blocker.waiting === true ? <span class="tone-warn">waits</span> : <Countdown until={blocker.expiresAt} />;
}
