import { Nothing, Page } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Tabs } from '../../parts/tabs.js';
import { Foreign, When } from '../../parts/text.js';
import { useMay } from '../../principal.js';
import { isChanged } from '../../pure/map-draft.js';
import { useNamespace, useParameter } from '../../router.js';
import { useDraft } from './draft.js';
import { Edit } from './edit.js';
import { Explain } from './explain.js';
import { History } from './history.js';
import { Matrix } from './matrix.js';
import './map.css';

type View = 'edit' | 'explain' | 'matrix' | 'history';

/** The conflict map: which writes exclude each other, and why. */
export default function ConflictMapScreen() {
  const namespace = useNamespace();
  const may = useMay();
  const [named, setView] = useParameter('view');
  const { draft, map } = useDraft(namespace);
  const views: readonly (readonly [View, string])[] = [
    ['edit', may('ConflictMapService/PutConflictMap') ? 'Edit' : 'Text'],
    ...(may('ConflictMapService/ExplainConflict') ? ([['explain', 'Explain']] as const) : []),
    ...(may('ConflictMapService/GetTaskMatrix') ? ([['matrix', 'Task matrix']] as const) : []),
    ...(may('ConflictMapService/ListConflictMapVersions') ? ([['history', 'History']] as const) : []),
  ];
  const view = views.find(([name]) => name === named)?.[0] ?? 'edit';
  const { version = '0', author, reason, createdAt } = map.value ?? {};
  // What is explained is what is on the screen: an edit that was not applied, if there is one.
  const document = draft !== null && isChanged(draft) ? draft.text : '';
  return (
    <Page
      title="Conflict map"
      about={
        map.value !== undefined &&
        (version === '0' ? (
          'There is no map yet: nothing is described, so nothing is granted.'
        ) : (
          <>
            Version {version}, by <Foreign text={author ?? ''} /> <When at={createdAt} />
            {reason && (
              <>
                : <Foreign text={reason} />
              </>
            )}
          </>
        ))
      }
      actions={
        <Tabs
          label="Views of the map"
          tabs={views}
          chosen={view}
          onChoose={(next) => setView(next === 'edit' ? '' : next)}
        />
      }
    >
      <ReadProblem problem={map.problem} stale={map.value !== undefined} />
      {draft === null && map.problem === null && <Nothing>Reading…</Nothing>}
      {draft !== null && view === 'edit' && <Edit namespace={namespace} draft={draft} reload={map.reload} />}
      {view === 'explain' && <Explain document={document} />}
      {view === 'matrix' && <Matrix document={document} version={version} />}
      {view === 'history' && <History version={version} onRolledBack={map.reload} />}
    </Page>
  );
}
