import { Panel } from '../../parts/page.js';
import { Foreign, When } from '../../parts/text.js';
import { type MapDraft, ontoOther, takeOther } from '../../pure/map-draft.js';
import { CodeEditor } from './code-editor.js';

/** Somebody else put a map while this one was edited: what they changed is shown, and nothing of one's own is lost. */
export function OtherEdited({
  draft,
  onChange,
}: {
  readonly draft: MapDraft;
  readonly onChange: (next: MapDraft) => void;
}) {
  const { other } = draft;
  if (other === null) return null;
  return (
    <Panel
      title={`Version ${other.version} was put meanwhile`}
      class="urgent"
      about={
        <>
          By <Foreign text={other.author} /> <When at={other.createdAt} />
          {other.reason !== '' && (
            <>
              : <Foreign text={other.reason} />
            </>
          )}
          . Your text is kept.
        </>
      }
      actions={
        <>
          <button type="button" onClick={() => onChange(takeOther(draft))}>
            Take theirs, give up mine
          </button>
          <button type="button" class="primary" onClick={() => onChange(ontoOther(draft))}>
            Go on with mine against version {other.version}
          </button>
        </>
      }
    >
      <div class="body">
        <p class="hint">
          What they changed since version {draft.version}. If you go on with yours, look at the diff before you apply:
          what they added and you do not have would be taken away.
        </p>
      </div>
      <CodeEditor label={`What version ${other.version} changed`} value={other.document} original={draft.base} />
    </Panel>
  );
}
