import { useState } from 'preact/hooks';
import { call, get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import { usePages } from '../../api/pages.js';
import type { Answer, ConflictMap, MapVersion } from '../../api/shapes.js';
import { ActDialog } from '../../parts/act-dialog.js';
import { Dialog } from '../../parts/dialog.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ProblemNote } from '../../parts/problem.js';
import { ReadMore } from '../../parts/read-more.js';
import { type Column, Table } from '../../parts/table.js';
import { Exactly, Foreign } from '../../parts/text.js';
import { useMay } from '../../principal.js';
import { useNamespace } from '../../router.js';
import { CodeEditor } from './code-editor.js';

type Versions = Answer<'ListConflictMapVersionsResponse'>;

interface HistoryProps {
  /** The current one. */
  readonly version: string;
  readonly onRolledBack: () => void;
}

/** Who put which version, when and why; and the way back, which is a new version. */
export function History({ version, onRolledBack }: HistoryProps) {
  const may = useMay();
  const [shown, setShown] = useState<string | null>(null);
  const [back, setBack] = useState<string | null>(null);
  const mayPut = may('ConflictMapService/PutConflictMap');
  const columns = [...COLUMNS, acts({ current: version, mayPut, show: setShown, goBack: setBack })];
  const pages = usePages<MapVersion>(
    '/v1/conflict-map/versions',
    {},
    {
      rowsOf: (page) => (page as Versions).versions ?? [],
      touchedBy: ({ kind }) => kind === 'conflict_map_put',
    },
  );
  return (
    <Panel title="Versions" about="Newest first. None is ever changed.">
      {!pages.loading && pages.rows.length === 0 && <Nothing>There is no version yet.</Nothing>}
      {pages.rows.length > 0 && <Table columns={columns} rows={pages.rows} keyOf={({ version = '' }) => version} />}
      <ReadMore pages={pages} what="versions" />
      {shown !== null && <Changes version={shown} onClose={() => setShown(null)} />}
      {back !== null && <RollBack to={back} from={version} onDone={onRolledBack} onClose={() => setBack(null)} />}
    </Panel>
  );
}

async function documentOf(version: number, namespace: string, signal: AbortSignal): Promise<string> {
  if (version < 1) return '';
  const { document = '' } = await get<ConflictMap>('/v1/conflict-map', {
    namespace,
    signal,
    query: { version: String(version) },
  });
  return document;
}

function Changes({ version, onClose }: { readonly version: string; readonly onClose: () => void }) {
  const namespace = useNamespace();
  const { value, problem } = useData(
    `version ${version}`,
    async (signal) => ({
      before: await documentOf(Number(version) - 1, namespace, signal),
      after: await documentOf(Number(version), namespace, signal),
    }),
    { live: false },
  );
  return (
    <Dialog title={`What version ${version} changed`} onClose={onClose} wide>
      {problem !== null && <ProblemNote problem={problem} />}
      {value !== undefined && (
        <CodeEditor label={`Version ${version}, and what it changed`} value={value.after} original={value.before} />
      )}
    </Dialog>
  );
}

interface RollBackProps {
  readonly to: string;
  readonly from: string;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function RollBack({ to, from, onDone, onClose }: RollBackProps) {
  return (
    <ActDialog
      title={`Go back to version ${to}`}
      button={`Put it again, as version ${Number(from) + 1}`}
      act={async (reason) => {
        const { value } = await call<{ version?: string }>('POST', '/v1/conflict-map/rollback', {
          ifMatch: `"${from}"`,
          body: { toVersion: to, reason },
        });
        onDone();
        return value;
      }}
      result={({ version }) => (
        <p>
          What version {to} said is version <strong>{version}</strong> now.
        </p>
      )}
      onClose={onClose}
    >
      <p>
        The text of version {to} is put again as a new version, against version {from}. It is refused when somebody has
        put another one meanwhile.
      </p>
    </ActDialog>
  );
}

const COLUMNS: readonly Column<MapVersion>[] = [
  { name: 'Version', fit: 'tight', cell: ({ version }) => version },
  { name: 'When', fit: 'tight', cell: ({ createdAt }) => <Exactly at={createdAt} /> },
  { name: 'Who', cell: ({ author }) => <Foreign text={author ?? ''} /> },
  { name: 'Why', cell: ({ reason }) => <Foreign text={reason ?? ''} /> },
];

interface Acts {
  readonly current: string;
  readonly mayPut: boolean;
  readonly show: (version: string) => void;
  readonly goBack: (version: string) => void;
}

const acts = ({ current, mayPut, show, goBack }: Acts): Column<MapVersion> => ({
  name: 'What one can do',
  unnamed: true,
  fit: 'tight',
  cell: ({ version = '' }) => (
    <>
      <button type="button" class="small" onClick={() => show(version)}>
        Changes
      </button>{' '}
      {mayPut && version !== current && (
        <button type="button" class="small" onClick={() => goBack(version)}>
          Go back to it…
        </button>
      )}
    </>
  ),
});
