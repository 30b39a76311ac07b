import { useMemo, useState } from 'preact/hooks';
import type { Lease } from '../../api/shapes.js';
import { LongList } from '../../parts/long-list.js';
import { Nothing } from '../../parts/page.js';
import { Countdown, LeaseLink, Resource, RunLink, State } from '../../parts/text.js';
import { visible } from '../../pure/foreign-text.js';
import { ResourceTree, type TreeRow } from '../../pure/resource-tree.js';
import { access, codeOf, leaseState } from '../../pure/words.js';

const ROW_HEIGHT = 34;
/** A short list is shown open, a long one by its first segments. */
const FEW = 60;

interface LeaseTreeProps {
  readonly leases: readonly Lease[];
  readonly loading: boolean;
  readonly filtered: boolean;
}

/** What is held and asked for, by the paths of resources. */
export function LeaseTree({ leases, loading, filtered }: LeaseTreeProps) {
  const tree = useMemo(() => new ResourceTree(leases), [leases]);
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const openAtFirst = leases.length <= FEW;
  const rows = useMemo(() => tree.rows((path) => openAtFirst !== turned.has(path)), [tree, turned, openAtFirst]);
  const turn = (path: string) => {
    const next = new Set(turned);
    if (!next.delete(path)) next.add(path);
    setTurned(next);
  };
  if (rows.length === 0) {
    if (loading) return null;
    return <Nothing>{filtered ? 'No lease fits the filters.' : 'Nobody holds anything, and nobody waits.'}</Nothing>;
  }
  return (
    <LongList
      label="Leases by resource"
      class="lease-tree"
      rows={rows}
      keyOf={({ key }) => key}
      rowHeight={ROW_HEIGHT}
      columns={['Resource', 'Left', 'State', 'Run', 'Lease', 'Token']}
    >
      {(row) => (row.is === 'resource' ? <ResourceRow row={row} onTurn={turn} /> : <EntryRow row={row} />)}
    </LongList>
  );
}

type ResourceRowOf = Extract<TreeRow, { is: 'resource' }>;
type EntryRowOf = Extract<TreeRow, { is: 'entry' }>;

function ResourceRow({ row, onTurn }: { readonly row: ResourceRowOf; readonly onTurn: (path: string) => void }) {
  const { path, segment, depth, open, held, waiting, nearestExpiry } = row;
  return (
    <>
      <td>
        <span class="indent" style={{ '--depth': depth }} />
        <button
          type="button"
          class="quiet turn"
          aria-expanded={open}
          aria-label={`${open ? 'Close' : 'Open'} ${visible(path)}`}
          onClick={() => onTurn(path)}
        >
          {open ? '▾' : '▸'}
        </button>
        <Resource name={path} shown={segment} />
      </td>
      <td>{nearestExpiry !== '' && <Countdown until={nearestExpiry} />}</td>
      <td class="counts" colSpan={4}>
        {held > 0 && <span>{held.toLocaleString('en')} held</span>}
        {waiting > 0 && <span class="tone-warn">{waiting.toLocaleString('en')} waiting</span>}
      </td>
    </>
  );
}

function EntryRow({ row }: { readonly row: EntryRowOf }) {
  const { lease, entry } = row.held;
  const token = entry.fencingToken ?? '0';
  const subtree = codeOf(entry.scope, 'SCOPE') === 'SUBTREE';
  return (
    <>
      <td class="entry">
        <span class="indent" style={{ '--depth': row.depth }} />
        {access(entry.access)}
        {entry.actions !== undefined && entry.actions.length > 0 && ` · ${entry.actions.join(', ')}`}
        {subtree && ' · and all below'}
        {entry.impliedBy && <span class="aside"> by {entry.impliedBy}</span>}
      </td>
      <td>
        <Countdown until={lease.expiresAt} />
      </td>
      <td>
        {entry.suspended === true ? <span class="tone-warn">suspended</span> : <State code={leaseState(lease.state)} />}
      </td>
      <td>
        <RunLink id={lease.runId} />
      </td>
      <td>
        <LeaseLink id={lease.leaseId} />
      </td>
      <td class="mono">{token === '0' ? '–' : token}</td>
    </>
  );
}
