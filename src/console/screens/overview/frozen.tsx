import { useState } from 'preact/hooks';
import { ThawPattern } from '../../acts/freeze.js';
import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Answer, Freeze } from '../../api/shapes.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { type Column, Table } from '../../parts/table.js';
import { Foreign, When } from '../../parts/text.js';
import { useMay } from '../../principal.js';
import { covers } from '../../pure/words.js';

type Freezes = Answer<'ListFreezesResponse'>;

/** What an operator has stopped, and the way to let it go on. */
export function Frozen({ onFreeze }: { readonly onFreeze: () => void }) {
  const may = useMay();
  const [thawed, setThawed] = useState<Freeze | null>(null);
  const { value, problem } = useData(
    'freezes',
    (signal) => get<Freezes>('/v1/freezes', { signal, query: { page_size: '200' } }),
    { touchedBy: ({ kind }) => kind === 'pattern_frozen' || kind === 'pattern_thawed' },
  );
  const freezes = value?.freezes ?? [];
  const columns = may('LeaseService/Thaw') ? [...COLUMNS, thawing(setThawed)] : COLUMNS;
  // What a thaw did is read to its end, also when nothing is frozen any more.
  const nothing = value !== undefined && freezes.length === 0 && problem === null;
  if (nothing && thawed === null) return null;
  return (
    <Panel
      title="Frozen"
      count={freezes.length}
      about="Nothing is granted here until it is thawed."
      actions={
        may('LeaseService/Freeze') && (
          <button type="button" class="small" onClick={onFreeze}>
            Freeze…
          </button>
        )
      }
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {value === undefined && problem === null && <Nothing>Reading…</Nothing>}
      {nothing && <Nothing>Nothing is frozen.</Nothing>}
      {freezes.length > 0 && <Table columns={columns} rows={freezes} keyOf={({ pattern }) => pattern} />}
      {thawed !== null && <ThawPattern freeze={thawed} onClose={() => setThawed(null)} />}
    </Panel>
  );
}

const COLUMNS: readonly Column<Freeze>[] = [
  {
    name: 'Pattern',
    cell: ({ pattern, scope: how }) => (
      <>
        <Foreign text={pattern} class="mono" />
        <div class="aside">{covers(how)}</div>
      </>
    ),
  },
  {
    name: 'Writes of holders',
    cell: ({ denyChecks }) => (denyChecks === true ? <span class="tone-bad">denied</span> : 'go on'),
  },
  {
    name: 'By whom, and why',
    cell: ({ frozenBy, frozenAt, reason }) => (
      <>
        <Foreign text={frozenBy ?? ''} /> <When at={frozenAt} />
        <div>
          <Foreign text={reason ?? ''} class="aside" />
        </div>
      </>
    ),
  },
  { name: 'Ends', cell: ({ until }) => <When at={until} absent="when it is thawed" /> },
];

const thawing = (thaw: (freeze: Freeze) => void): Column<Freeze> => ({
  name: 'Thaw',
  unnamed: true,
  fit: 'tight',
  cell: (freeze) => (
    <button type="button" class="small" onClick={() => thaw(freeze)}>
      Thaw…
    </button>
  ),
});
