import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Answer, Run } from '../../api/shapes.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { type Column, Table } from '../../parts/table.js';
import { Foreign, RunLink, State } from '../../parts/text.js';
import { counted, inLowerCase, runState } from '../../pure/words.js';

type Runs = Answer<'ListRunsResponse'>;

const STUCK = ['RUN_STATE_STOPPING', 'RUN_STATE_BLOCKED', 'RUN_STATE_WAITING_FOR_INPUT'];
const RANK = new Map(STUCK.map((state, rank) => [state, rank]));
const TOUCHING = new Set(['run_state_changed', 'writes_reported', 'doubt_settled', 'database_identified']);

/** Runs that do not go on by themselves: stopping, blocked, or waiting for an answer. */
export function StuckRuns() {
  const { value, problem } = useData(
    'stuck runs',
    (signal) => get<Runs>('/v1/runs', { signal, query: { states: STUCK, page_size: '200' } }),
    { touchedBy: ({ kind }) => TOUCHING.has(kind) },
  );
  const runs = [...(value?.runs ?? [])].sort(
    (a, b) => (RANK.get(a.state ?? '') ?? STUCK.length) - (RANK.get(b.state ?? '') ?? STUCK.length),
  );
  return (
    <Panel
      title="Runs that need somebody"
      count={value === undefined ? undefined : `${runs.length}${value.nextPageToken ? '+' : ''}`}
      class={runs.some(({ state }) => state === 'RUN_STATE_STOPPING') ? 'urgent' : ''}
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {value !== undefined && runs.length === 0 && (
        <Nothing>No run is stopping, blocked or waiting for an answer.</Nothing>
      )}
      {runs.length > 0 && <Table columns={COLUMNS} rows={runs} keyOf={({ runId }) => runId} />}
    </Panel>
  );
}

const COLUMNS: readonly Column<Run>[] = [
  {
    name: 'Run',
    cell: ({ runId, purpose }) => (
      <>
        <RunLink id={runId} /> <Foreign text={purpose ?? ''} class="clamped" />
      </>
    ),
  },
  {
    name: 'State',
    fit: 'tight',
    cell: ({ state, endsAs }) => (
      <>
        <State code={runState(state)} />
        {runState(endsAs) !== '' && <div class="aside">ends as {inLowerCase(runState(endsAs))}</div>}
      </>
    ),
  },
  {
    name: 'What is unresolved',
    cell: ({ openWriteCount = 0, stateReason }) => (
      <>
        {openWriteCount > 0 && <strong>{counted(openWriteCount, 'write')} with an unknown outcome. </strong>}
        <Foreign text={stateReason ?? ''} class="clamped" />
      </>
    ),
  },
];
