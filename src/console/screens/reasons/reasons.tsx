import { useMemo } from 'preact/hooks';
import mapGuide from '../../../../docs/conflict-map.md?raw';
import operations from '../../../../docs/operations.md?raw';
import guide from '../../../../docs/reason-codes.md?raw';
import { TextField } from '../../parts/field.js';
import { Nothing, Page, Panel } from '../../parts/page.js';
import { Tabs } from '../../parts/tabs.js';
import { found, guideRows, type ReasonCode, reasonCodes } from '../../pure/reason-codes.js';
import { counted } from '../../pure/words.js';
import { useParameter } from '../../router.js';
import './reasons.css';

const VIEWS = [
  ['codes', 'Reason codes'],
  ['trouble', 'When something is wrong'],
  ['alerts', 'Alerts'],
] as const;

type View = (typeof VIEWS)[number][0];

const CALLED: Readonly<Record<View, string>> = { codes: 'code', trouble: 'thing to see', alerts: 'alert' };

/** What every code means, what to do about it, and who can; and what to do when something is wrong: the guides, as they ship. */
export default function Reasons() {
  const [code, setCode] = useParameter('code');
  const [named, setView] = useParameter('view');
  const view: View = VIEWS.find(([name]) => name === named)?.[0] ?? 'codes';
  const all = useMemo(() => rowsOf(view), [view]);
  const shown = found(all, code);
  return (
    <Page
      title="Codes and runbook"
      about="What every answer and every alert means, what to do, and who can do it."
      actions={
        <Tabs label="Guides" tabs={VIEWS} chosen={view} onChoose={(next) => setView(next === 'codes' ? '' : next)} />
      }
    >
      <search class="filters">
        <TextField label="Code, or a word" type="search" value={code} onChange={setCode} maxLength={128} />
      </search>
      <Panel
        title={counted(shown.length, CALLED[view], view === 'trouble' ? 'things to see' : undefined)}
        about={shown.length === all.length ? undefined : `Of ${all.length}.`}
      >
        {shown.length === 0 && <Nothing>Nothing is called so, and no explanation has the word.</Nothing>}
        <ul class="reasons">
          {shown.map((row) => (
            <Row key={`${row.chapter} ${row.code}`} row={row} />
          ))}
        </ul>
      </Panel>
    </Page>
  );
}

function Row({ row: { code, isCode, chapter, cells } }: { readonly row: ReasonCode }) {
  return (
    <li>
      <h3 class={isCode ? 'mono' : ''}>{code}</h3>
      {isCode && <p class="aside">{chapter}</p>}
      <dl>
        {cells
          .filter(([, text]) => text !== '')
          .map(([column, text]) => (
            <div key={column}>
              <dt>{column}</dt>
              <dd>{text}</dd>
            </div>
          ))}
      </dl>
    </li>
  );
}

function rowsOf(view: View): readonly ReasonCode[] {
  const of = (markdown: string, chapter: string) => guideRows(markdown).filter((row) => row.chapter === chapter);
  if (view === 'trouble') return of(operations, 'Trouble');
  if (view === 'alerts') return of(operations, 'Alerts');
  // Those of validation stand in the guide to the map.
  return [...reasonCodes(guide), ...reasonCodes(mapGuide).filter(({ chapter }) => chapter === 'Validation codes')];
}
