import { useState } from 'preact/hooks';
import { post } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { AffectedLease, Answer } from '../../api/shapes.js';
import { useRested } from '../../clock.js';
import { Choice } from '../../parts/field.js';
import { ProblemNote } from '../../parts/problem.js';
import { Foreign, LeaseLink, Resource, RunLink } from '../../parts/text.js';
import { access, counted } from '../../pure/words.js';
import { HANDLINGS, type Handling } from './handling.js';

type Told = Answer<'PreviewConflictMapResponse'>;

const REST_MS = 600;
const SHOWN = 50;

/** Which live leases the text would hit. */
export function Preview({ document, changed }: { readonly document: string; readonly changed: boolean }) {
  const [handling, setHandling] = useState<Handling>('ON_LIVE_CONFLICT_REFUSE');
  const text = useRested(document, REST_MS);
  const { value, problem, loading } = useData(
    changed ? `preview ${handling} ${text}` : null,
    (signal) => post<Told>('/v1/conflict-map/preview', { document: text, onLiveConflict: handling }, { signal }),
    { live: false },
  );
  return (
    <div class="body form">
      <Choice label="Live leases that come into conflict" value={handling} onChange={setHandling} options={HANDLINGS} />
      {!changed && <p class="hint">Nothing was changed, so nobody is hit.</p>}
      {problem !== null && <ProblemNote problem={problem} />}
      {loading && value === undefined && <p class="hint">Looking…</p>}
      {value !== undefined && (
        <div aria-live="polite" class="form">
          <p class={value.accepted === true ? 'tone-good' : 'tone-bad'}>
            {value.accepted === true ? 'It would be taken as things are.' : 'It would not be taken as things are.'}
          </p>
          <Affected affected={value.affected ?? []} />
        </div>
      )}
    </div>
  );
}

/** Leases that a map hits: those that it would, or, once it was put, did. */
export function Affected({
  affected,
  done = false,
}: {
  readonly affected: readonly AffectedLease[];
  readonly done?: boolean;
}) {
  const ended = affected.filter((lease) => lease.ended === true).length;
  const [be, get] = done ? ['was', 'got'] : ['would be', 'gets'];
  return (
    <>
      <p>
        {affected.length === 0
          ? `No live or waiting lease ${done ? 'was' : 'is'} touched.`
          : `${counted(affected.length, 'lease')} ${done ? 'touched' : 'would be touched'}, ${ended === 0 ? 'none' : ended} ended.`}
      </p>
      <ul class="affected">
        {affected.slice(0, SHOWN).map((lease) => (
          <li key={lease.leaseId}>
            <p>
              <LeaseLink id={lease.leaseId} /> of run <RunLink id={lease.runId ?? ''} />
              {lease.ended === true && <span class="tone-bad"> {be} ended</span>}
            </p>
            {(lease.added ?? []).length > 0 && (
              <p class="aside">
                {get}{' '}
                {lease.added?.map((entry) => (
                  <span key={`${entry.resource} ${entry.access}`}>
                    {access(entry.access)} of <Resource name={entry.resource ?? ''} /> by {entry.impliedBy}{' '}
                  </span>
                ))}
              </p>
            )}
            {(lease.conflictsWith ?? []).length > 0 && (
              <p class="aside">
                in conflict with{' '}
                {lease.conflictsWith?.map((id) => (
                  <span key={id}>
                    <LeaseLink id={id} />{' '}
                  </span>
                ))}
              </p>
            )}
            {lease.noLongerGranted && (
              <p class="aside">
                would not be granted any more, and keeps what it holds: <Foreign text={lease.noLongerGranted} />
              </p>
            )}
          </li>
        ))}
      </ul>
      {affected.length > SHOWN && <p class="aside">and {affected.length - SHOWN} more</p>}
    </>
  );
}
