import { useState } from 'preact/hooks';
import { post } from '../api/client.js';
import type { Answer, OpenWrite } from '../api/shapes.js';
import { ActDialog } from '../parts/act-dialog.js';
import { Choice, TextField } from '../parts/field.js';
import { Foreign, Resource, RunLink, When } from '../parts/text.js';
import { countedThat } from '../pure/words.js';

type Settled = Answer<'SettleInDoubtResponse'>;

type Outcome = 'SETTLED_OUTCOME_UNSPECIFIED' | 'SETTLED_OUTCOME_HAPPENED' | 'SETTLED_OUTCOME_DID_NOT_HAPPEN';

/** Says what became of a write in doubt, once somebody has found out. */
export function SettleInDoubt({ write, onClose }: { readonly write: OpenWrite; readonly onClose: () => void }) {
  const [outcome, setOutcome] = useState<Outcome>('SETTLED_OUTCOME_UNSPECIFIED');
  const [version, setVersion] = useState('');
  const happened = outcome === 'SETTLED_OUTCOME_HAPPENED';
  return (
    <ActDialog
      title="Settle a write in doubt"
      button="Settle it"
      ready={outcome !== 'SETTLED_OUTCOME_UNSPECIFIED'}
      act={(reason) =>
        post<Settled>(`/v1/in-doubt/${write.admissionId}/settle`, {
          outcome,
          reason,
          ...(happened && version !== '' && { newVersion: version }),
        })
      }
      result={({ settledNow, stillOpen = [] }) => (
        <p>
          {settledNow === true
            ? 'It is settled; whoever waited for the resource is granted it.'
            : 'This was known before.'}{' '}
          {stillOpen.length === 0
            ? 'Nothing else of its run is open.'
            : `${countedThat(stillOpen.length, 'write', 'of its run is', 'of its run are')} still open.`}
        </p>
      )}
      onClose={onClose}
    >
      <p>
        {write.runId && (
          <>
            Run <RunLink id={write.runId} />
          </>
        )}{' '}
        was let in to <strong>{write.action}</strong> <Resource name={write.resource} />, <When at={write.admittedAt} />
        , for <Foreign text={write.target || 'a target'} /> (request <code>{write.requestId}</code>).
        {write.observedVersion !== undefined && (
          <>
            {' '}
            It had read version <Foreign text={write.observedVersion} />.
          </>
        )}
      </p>
      <p>
        Look at the target itself. What you say is final: the resource is granted again, on the strength of it, and{' '}
        another finding is refused later.
      </p>
      <Choice
        label="What became of it?"
        value={outcome}
        onChange={setOutcome}
        options={[
          ['SETTLED_OUTCOME_UNSPECIFIED', 'Choose…'],
          ['SETTLED_OUTCOME_HAPPENED', 'It happened'],
          ['SETTLED_OUTCOME_DID_NOT_HAPPEN', 'It did not happen, and will not'],
        ]}
      />
      {happened && (
        <TextField label="Version now (may be left out)" value={version} onChange={setVersion} maxLength={256} />
      )}
    </ActDialog>
  );
}
