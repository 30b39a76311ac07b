import { usePages } from '../../api/pages.js';
import type { Answer, Run } from '../../api/shapes.js';
import { Choice } from '../../parts/field.js';
import { Nothing, Page, Panel } from '../../parts/page.js';
import { ReadMore } from '../../parts/read-more.js';
import { type Column, Table } from '../../parts/table.js';
import { Foreign, RunLink, State, When } from '../../parts/text.js';
import { counted, runState } from '../../pure/words.js';
import { useParameter } from '../../router.js';

type Runs = Answer<'ListRunsResponse'>;

const STATES = [
  ['', 'All that have not ended'],
  ['RUN_STATE_ACTIVE', 'Active'],
  ['RUN_STATE_WAITING_FOR_INPUT', 'Waiting for input'],
  ['RUN_STATE_BLOCKED', 'Blocked'],
  ['RUN_STATE_STOPPING', 'Stopping'],
  ['RUN_STATE_STOPPED', 'Stopped'],
  ['RUN_STATE_FINISHED', 'Finished'],
  ['RUN_STATE_FAILED', 'Failed'],
  ['RUN_STATE_EXPIRED', 'Expired'],
] as const;

type Choices = (typeof STATES)[number][0];

const TOUCHING = new Set(['run_created', 'run_state_changed', 'lease_granted', 'lease_queued', 'lease_ended']);

/** The runs of the namespace. */
export function Runs() {
  const [named, setState] = useParameter('state');
  const state: Choices = STATES.find(([name]) => name === named)?.[0] ?? '';
  const pages = usePages<Run>('/v1/runs', state === '' ? {} : { states: state }, {
    rowsOf: (page) => (page as Runs).runs ?? [],
    touchedBy: ({ kind }) => TOUCHING.has(kind),
  });
  return (
    <Page title="Runs" about="Who works, on whose behalf, and whether they may still write.">
      <search class="filters">
        <Choice label="State" value={state} onChange={setState} options={STATES} />
      </search>
      <Panel title={counted(pages.rows.length, 'run')} about={pages.more ? 'There are more.' : undefined}>
        {!pages.loading && pages.rows.length === 0 && pages.problem === null && (
          <Nothing>No run is in this state.</Nothing>
        )}
        {pages.rows.length > 0 && <Table columns={COLUMNS} rows={pages.rows} keyOf={({ runId }) => runId} />}
        <ReadMore pages={pages} what="runs" />
      </Panel>
    </Page>
  );
}

const COLUMNS: readonly Column<Run>[] = [
  { name: 'Run', fit: 'tight', cell: ({ runId }) => <RunLink id={runId} /> },
  {
    name: 'State',
    fit: 'tight',
    cell: ({ state, openWriteCount = 0 }) => (
      <>
        <State code={runState(state)} />
        {openWriteCount > 0 && <div class="aside tone-bad">{counted(openWriteCount, 'write')} open</div>}
      </>
    ),
  },
  { name: 'Purpose', cell: ({ purpose }) => <Foreign text={purpose ?? ''} class="clamped" /> },
  {
    name: 'By',
    cell: ({ principal, initiator, initiatorVerified }) => (
      <>
        <Foreign text={principal ?? ''} />
        {initiator && (
          <div class="aside">
            for <Foreign text={initiator} />
            {initiatorVerified !== true && ' (not verified)'}
          </div>
        )}
      </>
    ),
  },
  { name: 'Leases', fit: 'number', cell: ({ liveLeases = 0 }) => liveLeases },
  { name: 'Waiting', fit: 'number', cell: ({ waitingRequests = 0 }) => waitingRequests },
  {
    name: 'Authority',
    fit: 'tight',
    cell: ({ state, endedAt, authorityEndsAt }) =>
      endedAt ? (
        <>
          ended <When at={endedAt} />
        </>
      ) : runState(state) === 'STOPPING' ? (
        'over'
      ) : (
        <>
          ends <When at={authorityEndsAt} />
        </>
      ),
  },
];
