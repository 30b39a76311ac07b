import { useState } from 'preact/hooks';
import { post } from '../api/client.js';
import type { Answer, Freeze } from '../api/shapes.js';
import { databaseNow } from '../clock.js';
import { ActDialog } from '../parts/act-dialog.js';
import { Choice, TextField } from '../parts/field.js';
import { Exactly, Foreign, When } from '../parts/text.js';
import { codeOf, counted, countedThat, inLowerCase } from '../pure/words.js';

type Frozen = Answer<'FreezeResponse'>;

type Scope = 'SCOPE_SUBTREE' | 'SCOPE_EXACT';
const LASTS = [
  ['', 'Until somebody thaws it'],
  ['900', '15 minutes'],
  ['3600', '1 hour'],
  ['14400', '4 hours'],
  ['86400', '1 day'],
] as const;

/** Stops all grants under a pattern. */
export function FreezePattern({
  pattern: first = '',
  onClose,
}: {
  readonly pattern?: string;
  readonly onClose: () => void;
}) {
  const [pattern, setPattern] = useState(first);
  const [scope, setScope] = useState<Scope>('SCOPE_SUBTREE');
  const [denies, setDenies] = useState(false);
  const [lasts, setLasts] = useState<(typeof LASTS)[number][0]>('');
  const freeze = (reason: string) =>
    post<Frozen>('/v1/freezes', {
      pattern,
      scope,
      denyChecks: denies,
      reason,
      ...(lasts !== '' && { until: new Date(databaseNow() + Number(lasts) * 1_000).toISOString() }),
    });
  return (
    <ActDialog
      title="Freeze a pattern"
      button={denies ? 'Stop grants and writes' : 'Stop grants'}
      danger
      ready={pattern.trim() !== ''}
      act={freeze}
      result={(value) => <FreezeResult {...value} />}
      onClose={onClose}
    >
      <TextField
        label="Resource or pattern"
        value={pattern}
        onChange={setPattern}
        required
        maxLength={1024}
        hint={
          <>
            Such as <code>release/prod-eu</code> or <code>{'tenant/{id}'}</code>.
          </>
        }
      />
      <Choice
        label="How far"
        value={scope}
        onChange={setScope}
        options={[
          ['SCOPE_SUBTREE', 'It and everything below it'],
          ['SCOPE_EXACT', 'Only what it names'],
        ]}
      />
      <Choice label="How long" value={lasts} onChange={setLasts} options={LASTS} />
      <label class="tick">
        <input type="checkbox" checked={denies} onChange={(event) => setDenies(event.currentTarget.checked)} />
        <span>
          Deny writes of those who hold something there, too
          <span class="aside">
            {' '}
            – without this, whoever holds something may finish; nobody is granted anything new either way.
          </span>
        </span>
      </label>
    </ActDialog>
  );
}

function FreezeResult({ outcome, freeze, effectiveAt, liveLeases = 0, waitingRequests = 0, kinds = [] }: Frozen) {
  return (
    <>
      <p>
        <Foreign text={freeze?.pattern ?? ''} class="mono" /> is{' '}
        <strong>{inLowerCase(codeOf(outcome, 'FREEZE_OUTCOME'))}</strong>, in force since <Exactly at={effectiveAt} />.
      </p>
      <p>
        {counted(liveLeases, 'live lease')} below it {freeze?.denyChecks === true ? 'may not write now' : 'may finish'};{' '}
        {countedThat(waitingRequests, 'request', 'waits', 'wait')} for it.
      </p>
      {kinds.length === 0 ? (
        <p class="tone-warn">The conflict map describes nothing there: is the pattern spelt right?</p>
      ) : (
        <p>
          Kinds under it: <span class="mono">{kinds.join(', ')}</span>
        </p>
      )}
    </>
  );
}

type Thawed = Answer<'ThawResponse'>;

/** Takes a freeze back. */
export function ThawPattern({ freeze, onClose }: { readonly freeze: Freeze; readonly onClose: () => void }) {
  return (
    <ActDialog
      title="Thaw a pattern"
      button="Thaw it"
      reason="optional"
      act={(reason) => post<Thawed>('/v1/freezes/thaw', { pattern: freeze.pattern, ...(reason !== '' && { reason }) })}
      result={(value) => <ThawResult {...value} pattern={freeze.pattern} />}
      onClose={onClose}
    >
      <p>
        <Foreign text={freeze.pattern} class="mono" /> was frozen
        {freeze.frozenBy && (
          <>
            {' '}
            by <Foreign text={freeze.frozenBy} />
          </>
        )}
        {freeze.reason && (
          <>
            : <Foreign text={freeze.reason} />
          </>
        )}
      </p>
      <p>
        Whoever waits for something there is granted it at once, in the order of the queue, unless another freeze or a
        holder is in the way.
      </p>
    </ActDialog>
  );
}

/** What is granted there again, to whom it was, and what still stands in the way. */
function ThawResult({ pattern, outcome, granted = 0, stillFrozenBy = [] }: Thawed & { readonly pattern: string }) {
  if (codeOf(outcome, 'THAW_OUTCOME') === 'NOT_FROZEN')
    return (
      <p>
        <Foreign text={pattern} class="mono" /> was not frozen any more: somebody else thawed it, or its time was over.
        Nothing was changed.
      </p>
    );
  return (
    <>
      <p>
        <Foreign text={pattern} class="mono" /> is <strong>thawed</strong>.
      </p>
      <p>
        {granted === 0
          ? 'No waiting request was granted by this: what runs ask for there is granted from now on.'
          : `${countedThat(granted, 'waiting request', 'was', 'were')} granted by this.`}
      </p>
      {stillFrozenBy.length > 0 && (
        <div class="note tone-warn">
          <p>Other freezes overlap it and still hold; each is thawed for itself:</p>
          <ul>
            {stillFrozenBy.map((other) => (
              <li key={other.pattern}>
                <Foreign text={other.pattern} class="mono" />
                {other.reason && (
                  <>
                    : <Foreign text={other.reason} />
                  </>
                )}
                <div class="aside">
                  <Foreign text={other.frozenBy ?? ''} /> <When at={other.frozenAt} />
                </div>
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}
