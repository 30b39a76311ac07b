import { useState } from 'preact/hooks';
import { call, get } from '../../api/client.js';
import { asProblem } from '../../api/problem.js';
import type { Answer, ConflictMap } from '../../api/shapes.js';
import { ActDialog } from '../../parts/act-dialog.js';
import { Choice } from '../../parts/field.js';
import { applied, type MapDraft } from '../../pure/map-draft.js';
import { counted } from '../../pure/words.js';
import { asEdit } from './draft.js';
import { HANDLINGS, type Handling } from './handling.js';
import { Affected } from './preview.js';

type Put = Answer<'PutConflictMapResponse'>;

interface ApplyProps {
  readonly namespace: string;
  readonly draft: MapDraft;
  readonly onApplied: (draft: MapDraft) => void;
  /** Somebody else was faster: what they put is in it. */
  readonly onOther: (draft: MapDraft) => void;
  readonly onClose: () => void;
}

/** Puts the text, against the version that it was begun from. */
export function Apply({ namespace, draft, onApplied, onOther, onClose }: ApplyProps) {
  const [handling, setHandling] = useState<Handling>('ON_LIVE_CONFLICT_REFUSE');
  const [began] = useState(draft);
  const put = async (reason: string): Promise<Put> => {
    try {
      const { value } = await call<Put>('PUT', '/v1/conflict-map', {
        namespace,
        ifMatch: `"${began.version}"`,
        body: { document: began.text, reason, onLiveConflict: handling },
      });
      onApplied(applied(began, value.version ?? began.version, began.text));
      return value;
    } catch (error) {
      if (asProblem(error).status !== 412) throw error;
      const now = await get<ConflictMap>('/v1/conflict-map', { namespace });
      onOther({ ...began, other: asEdit(now) });
      throw error;
    }
  };
  return (
    <ActDialog
      title="Apply the map"
      button={`Apply as version ${Number(began.version) + 1}`}
      act={put}
      result={({ version, warnings = [], affected = [] }) => (
        <>
          <p>
            It is version <strong>{version}</strong>, in force since now
            {warnings.length > 0 && `, with ${counted(warnings.length, 'warning')}`}.
          </p>
          <Affected done affected={affected} />
        </>
      )}
      onClose={onClose}
    >
      <p>
        It takes the place of version {began.version}, for every run at once. Live leases get the locks that the new map
        says they need, and lose none.
      </p>
      <Choice label="Live leases that come into conflict" value={handling} onChange={setHandling} options={HANDLINGS} />
    </ActDialog>
  );
}
