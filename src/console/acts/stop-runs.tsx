import { useState } from 'preact/hooks';
import { get, newKey, post } from '../api/client.js';
import { useData } from '../api/data.js';
import type { Answer, Run } from '../api/shapes.js';
import { useRested } from '../clock.js';
import { ActDialog } from '../parts/act-dialog.js';
import { Choice, TextField } from '../parts/field.js';
import { Foreign, RunLink, State } from '../parts/text.js';
import { counted, runState } from '../pure/words.js';
import { Effective } from './effective.js';

type Runs = Answer<'ListRunsResponse'>;

type Leases = Answer<'ListLeasesResponse'>;

type StoppedRuns = Answer<'StopRunsResponse'>;

type By = 'resource' | 'principal' | 'all';

const REST_MS = 400;
const LISTED = 12;

/** Stops all runs that match. */
export function StopRuns({ onClose }: { readonly onClose: () => void }) {
  const [by, setBy] = useState<By>('resource');
  const [text, setText] = useState('');
  const [key] = useState(newKey);
  const wanted = useRested(text.trim(), REST_MS);
  const hit = useData(
    by === 'all' || wanted !== '' ? `stops ${by} ${wanted}` : null,
    (signal) => runsThatMatch(by, wanted, signal),
    { live: false },
  );
  const filter = by === 'all' ? { all: true } : { [by]: text.trim() };
  return (
    <ActDialog
      title="Stop runs"
      button={by === 'all' ? 'Stop every run' : 'Stop these runs'}
      danger
      ready={by === 'all' || text.trim() !== ''}
      act={(reason) => post<StoppedRuns>('/v1/runs/stop', { ...filter, reason }, { idempotencyKey: key })}
      result={({ runs = [], effectiveAt }) => (
        <>
          <p>
            {runs.length === 0 ? 'No run matched; nothing was stopped.' : `${counted(runs.length, 'run')} stopped:`}
          </p>
          {runs.length > 0 && (
            <>
              <RunList runs={runs} />
              <Effective at={effectiveAt} open={runs.flatMap(({ openWrites = [] }) => openWrites)} />
            </>
          )}
        </>
      )}
      onClose={onClose}
    >
      <Choice
        label="Which"
        value={by}
        onChange={setBy}
        options={[
          ['resource', 'By resource'],
          ['principal', 'By principal'],
          ['all', 'Every run of the namespace'],
        ]}
      />
      {by !== 'all' && (
        <TextField
          label={by === 'resource' ? 'Resource' : 'Principal'}
          hint={
            by === 'resource' ? 'Runs that hold or wait for something at, above or below it.' : 'Runs that it created.'
          }
          value={text}
          onChange={setText}
          required
          maxLength={1024}
        />
      )}
      <div class={`note tone-${hit.value === undefined ? 'idle' : 'warn'}`} aria-live="polite">
        {hit.value === undefined ? (
          <p>
            {hit.problem !== null
              ? hit.problem.detail
              : 'Say which runs; they are listed here before anything is done.'}
          </p>
        ) : (
          <>
            <p>
              {hit.value.runs.length === 0
                ? `No run ${hit.value.complete ? '' : 'of those that were looked at '}matches now. One that begins to match before you click is stopped all the same.`
                : `As things are this stops ${hit.value.complete ? '' : 'at least '}${counted(hit.value.runs.length, 'run')}, for good, and ends all that they hold:`}
            </p>
            <RunList runs={hit.value.runs} />
          </>
        )}
      </div>
    </ActDialog>
  );
}

function RunList({ runs }: { readonly runs: readonly Run[] }) {
  return (
    <ul class="run-list">
      {runs.slice(0, LISTED).map((run) => (
        <li key={run.runId}>
          <RunLink id={run.runId} /> <State code={runState(run.state)} />{' '}
          <Foreign text={run.purpose ?? ''} class="clamped" />
        </li>
      ))}
      {runs.length > LISTED && <li class="aside">and {runs.length - LISTED} more</li>}
    </ul>
  );
}

interface Matching {
  readonly runs: readonly Run[];
  /** False: there are more runs, or leases, than were looked at. */
  readonly complete: boolean;
}

async function runsThatMatch(by: By, wanted: string, signal: AbortSignal): Promise<Matching> {
  const { runs = [], nextPageToken = '' } = await get<Runs>('/v1/runs', { signal, query: { page_size: '1000' } });
  const complete = nextPageToken === '';
  if (by === 'all') return { runs, complete };
  if (by === 'principal') return { runs: runs.filter(({ principal }) => principal === wanted), complete };
  const found = await get<Leases>('/v1/leases', { signal, query: { resource: wanted, page_size: '1000' } });
  const holders = new Set((found.leases ?? []).map(({ runId }) => runId));
  return {
    runs: runs.filter(({ runId }) => holders.has(runId)),
    complete: complete && (found.nextPageToken ?? '') === '',
  };
}
