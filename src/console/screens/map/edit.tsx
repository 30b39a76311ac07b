import { useState } from 'preact/hooks';
import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { MapProblem } from '../../api/shapes.js';
import { Panel } from '../../parts/page.js';
import { Tabs } from '../../parts/tabs.js';
import { useMay } from '../../principal.js';
import { draftOf, isChanged, type MapDraft, withText } from '../../pure/map-draft.js';
import { type MapWords, wordsOf } from '../../pure/map-words.js';
import { Apply } from './apply.js';
import { CodeEditor } from './code-editor.js';
import { setDraft } from './draft.js';
import { OtherEdited } from './other-edited.js';
import { Preview } from './preview.js';
import { Problems } from './problems.js';
import { useValidation, type Validation } from './validation.js';

const SIDES = [
  ['problems', 'Problems'],
  ['diff', 'Diff'],
  ['preview', 'Preview'],
] as const;

type Side = (typeof SIDES)[number][0];

interface EditProps {
  readonly namespace: string;
  readonly draft: MapDraft;
  readonly reload: () => void;
}

/** The text, what is wrong with it, what it changes, and whom it would hit. */
export function Edit({ namespace, draft, reload }: EditProps) {
  const may = useMay();
  const [side, setSide] = useState<Side>('problems');
  const [applying, setApplying] = useState(false);
  const [goTo, setGoTo] = useState<{ readonly line: number; readonly column: number } | null>(null);
  const schema = useData('schema of the map', readWords, { live: false, ofNamespace: false });
  const validation = useValidation(draft.text, may('ConflictMapService/ValidateConflictMap'));
  const mayPut = may('ConflictMapService/PutConflictMap');
  const changed = isChanged(draft);
  const edit = (next: MapDraft) => setDraft(namespace, next);
  if (!may('ConflictMapService/ValidateConflictMap')) return <ReadOnly text={draft.text} />;
  const choose = ({ line = 0, column = 0 }: MapProblem) => setGoTo({ line, column });
  const errors = validation.problems.filter(({ warning }) => warning !== true).length;
  // Where it could not be checked, the coordinator checks it when it is put.
  const mayBeTaken = validation.state === 'failed' || (validation.state === 'checked' && validation.valid);
  return (
    <>
      {draft.other !== null && <OtherEdited draft={draft} onChange={edit} />}
      <div class="map-edit">
        <Panel
          title={changed ? 'Edited, not applied' : 'Text'}
          about={changed ? aboutEdit(draft.version, errors) : 'Tab indents; Escape and then Tab leaves the text.'}
          actions={
            <>
              {changed && (
                <button type="button" onClick={() => edit(draftOf(draft.version, draft.base))}>
                  Discard
                </button>
              )}
              {mayPut && (
                <button
                  type="button"
                  class="primary"
                  disabled={!changed || !mayBeTaken}
                  onClick={() => setApplying(true)}
                >
                  Apply…
                </button>
              )}
            </>
          }
        >
          <CodeEditor
            label="Text of the conflict map"
            value={draft.text}
            onChange={(text) => edit(withText(draft, text))}
            problems={validation.problems}
            {...(schema.value !== undefined && { words: schema.value })}
            goTo={goTo}
          />
        </Panel>
        <Panel
          title={sideTitle(side, validation.state, errors)}
          class="map-side"
          actions={<Tabs label="Beside the text" tabs={SIDES} chosen={side} onChoose={setSide} />}
        >
          {side === 'problems' && <Problems {...validation} onChoose={choose} />}
          {side === 'diff' && <Diff draft={draft} />}
          {side === 'preview' && <Preview document={draft.text} changed={changed} />}
        </Panel>
      </div>
      {applying && (
        <Apply
          namespace={namespace}
          draft={draft}
          onApplied={(next) => {
            edit(next);
            reload();
          }}
          onOther={(next) => {
            setApplying(false);
            edit(next);
          }}
          onClose={() => setApplying(false)}
        />
      )}
    </>
  );
}

const aboutEdit = (version: string, errors: number): string =>
  errors === 0
    ? `Against version ${version}.`
    : `Against version ${version}. It can be applied when its ${errors === 1 ? 'error is' : 'errors are'} mended.`;

const readWords = async (signal: AbortSignal): Promise<MapWords> =>
  wordsOf(await get('/v1/conflict-map/schema', { namespace: null, signal }));

function sideTitle(side: Side, state: Validation['state'], errors: number): string {
  if (side === 'diff') return 'What changes';
  if (side === 'preview') return 'Whom it would hit';
  if (state === 'checking') return 'Checking…';
  if (state === 'failed') return 'Not checked';
  return errors === 0 ? 'Valid' : 'Not valid';
}

function Diff({ draft }: { readonly draft: MapDraft }) {
  if (!isChanged(draft)) return <p class="nothing">Nothing was changed.</p>;
  return <CodeEditor label={`Changes against version ${draft.version}`} value={draft.text} original={draft.base} />;
}

function ReadOnly({ text }: { readonly text: string }) {
  return (
    <Panel title="Text">
      <CodeEditor label="Text of the conflict map" value={text} />
    </Panel>
  );
}
