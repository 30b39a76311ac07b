import { get, post } from '../api/client.js';
import { useData } from '../api/data.js';
import type { Answer, Run } from '../api/shapes.js';
import { ActDialog } from '../parts/act-dialog.js';
import { Behind } from '../parts/behind.js';
import { Foreign, Resource, State } from '../parts/text.js';
import { countedThat, runState } from '../pure/words.js';
import { Effective } from './effective.js';

type Stopped = Answer<'StopRunResponse'>;

type Runs = Answer<'ListRunsResponse'>;

/** Ends a run's authority to write. */
export function StopRun({ run, onClose }: { readonly run: Run; readonly onClose: () => void }) {
  const children = useData(
    `children ${run.runId}`,
    async (signal) => {
      const { runs = [], nextPageToken = '' } = await get<Runs>('/v1/runs', { signal, query: { page_size: '1000' } });
      const count = runs.filter(({ parentRunId }) => parentRunId === run.runId).length;
      return { count, complete: nextPageToken === '' };
    },
    { live: false },
  );
  const open = run.openWrites ?? [];
  const { count: below, complete } = children.value ?? { count: 0, complete: true };
  const { liveLeases: live = 0, waitingRequests: waiting = 0 } = run;
  return (
    <ActDialog
      title="Stop this run"
      button="Stop the run"
      danger
      act={(reason) => post<Stopped>(`/v1/runs/${run.runId}/stop`, { reason })}
      result={(value) => (
        <>
          <p>
            The run is <State code={runState(value.run?.state)} />.
          </p>
          <Effective at={value.effectiveAt} open={value.openWrites ?? []} />
        </>
      )}
      onClose={onClose}
    >
      {run.purpose && (
        <p>
          <Foreign text={run.purpose} class="clamped" />
        </p>
      )}
      <div>
        <p>
          <strong>What this does:</strong>
        </p>
        <ul class="bullets">
          <li>Every write of this run is refused from the moment the answer is here. It cannot be started again.</li>
          {live > 0 && <li>{countedThat(live, 'live lease', 'ends', 'end')}.</li>}
          {live > 0 && <Behind ends={(holder) => holder.runId === run.runId} />}
          {waiting > 0 && <li>{countedThat(waiting, 'waiting request', 'is withdrawn', 'are withdrawn')}.</li>}
          {!complete && below === 0 && <li>Runs that are part of it, if there are any, are stopped first.</li>}
          {below > 0 && (
            <li>
              {!complete && 'At least '}
              {countedThat(below, 'run', 'that is part of it is stopped', 'that are part of it are stopped')} first.
            </li>
          )}
          {open.length > 0 ? (
            <li>
              {countedThat(run.openWriteCount ?? open.length, 'write', 'was', 'were')} let in with an unknown outcome:
              the run stays <em>stopping</em> until that is known, and nobody else gets{' '}
              {open.slice(0, 3).map((write, index) => (
                <>
                  {index > 0 && ', '}
                  <Resource name={write.resource} />
                </>
              ))}
              {open.length > 3 && ` and ${open.length - 3} more`}.
            </li>
          ) : (
            <li>No write is open, so it comes to rest at once.</li>
          )}
          <li>A process that goes on working is not ended by this: its writes are refused by the targets.</li>
        </ul>
      </div>
    </ActDialog>
  );
}
