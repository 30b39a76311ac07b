import type { Lease, LeaseEntry } from '../../api/shapes.js';
import { Covered } from '../../parts/cells.js';
import { Panel } from '../../parts/page.js';
import { type Column, Table } from '../../parts/table.js';
import { Foreign, Reason } from '../../parts/text.js';
import { access, codeOf, howTargetsDecide, validation } from '../../pure/words.js';

/** What the lease covers, and the token of each resource. */
export function LeaseEntries({ lease }: { readonly lease: Lease }) {
  const entries = lease.entries ?? [];
  return (
    <Panel title="Write set" count={entries.length}>
      <Table columns={COLUMNS} rows={entries} keyOf={({ resource }, index) => `${resource} ${index}`} />
    </Panel>
  );
}

const COLUMNS: readonly Column<LeaseEntry>[] = [
  { name: 'Resource', cell: (entry) => <Covered entry={entry} /> },
  {
    name: 'Access',
    cell: ({ access: how, actions = [], exclusive, suspended }) => (
      <>
        {access(how)}
        {codeOf(how, 'ACCESS') === 'WRITE' && (exclusive === true ? ', alone' : ', beside others')}
        {actions.length > 0 && <div class="aside">{actions.join(', ')}</div>}
        {suspended === true && <div class="tone-warn">suspended: a child run holds it</div>}
      </>
    ),
  },
  { name: 'Why it is in', cell: (entry) => <Why entry={entry} /> },
  {
    name: 'Its targets',
    cell: (entry) => (
      <>
        {howTargetsDecide(entry.validation)}
        <div class="aside mono">{validation(entry.validation)}</div>
      </>
    ),
  },
  {
    name: 'Token',
    fit: 'number',
    cell: ({ fencingToken = '0' }) => <span class="mono">{fencingToken === '0' ? '–' : fencingToken}</span>,
  },
];

function Why({ entry }: { readonly entry: LeaseEntry }) {
  return (
    <>
      {entry.impliedBy ? (
        <>
          implied by <span class="mono">{entry.impliedBy}</span>
        </>
      ) : (
        'asked for'
      )}
      {entry.observedRefusal && (
        <div class="tone-warn">
          observed only: would be <Reason code={codeOf(entry.observedRefusal, 'REFUSAL_KIND')} />
        </div>
      )}
      {entry.observedVersion && (
        <div class="aside">
          had read version <Foreign text={entry.observedVersion} />
        </div>
      )}
    </>
  );
}
