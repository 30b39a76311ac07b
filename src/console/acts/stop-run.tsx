import { get, post } from '../api/client.js';
import { useData } from '../api/data.js';
import type { Answer, Run } from '../api/shapes.js';
import { ActDialog } from '../parts/act-dialog.js';
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
      const { runs = [] } = await get<Runs>('/v1/runs', { signal, query: { page_size: '1000' } });
      return runs.filter(({ parentRunId }) => parentRunId === run.runId);
    },
    { live: false },
  );
  const open = run.openWrites ?? [];
  const below = children.value ?? [];
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
          {live > 0 && (
            <li>
              {countedThat(live, 'live lease', 'ends', 'end')}; whoever waits for what is held by it is granted that.
            </li>
          )}
          {waiting > 0 && <li>{countedThat(waiting, 'waiting request', 'is withdrawn', 'are withdrawn')}.</li>}
          {below.length > 0 && (
            <li>
              {countedThat(below.length, 'run', 'that is part of it is stopped', 'that are part of it are stopped')}{' '}
              first.
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
