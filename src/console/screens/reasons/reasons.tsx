import { useMemo } from 'preact/hooks';
import mapGuide from '../../../../docs/conflict-map.md?raw';
import guide from '../../../../docs/reason-codes.md?raw';
import { TextField } from '../../parts/field.js';
import { Nothing, Page, Panel } from '../../parts/page.js';
import { found, reasonCodes } from '../../pure/reason-codes.js';
import { counted } from '../../pure/words.js';
import { useParameter } from '../../router.js';
import './reasons.css';

/** What every code means, what to do about it, and who can: the guide, as it ships. */
export default function Reasons() {
  const [code, setCode] = useParameter('code');
  const all = useMemo(everyCode, []);
  const shown = found(all, code);
  return (
    <Page title="Reason codes" about="What every answer means, what to do, and who can do it.">
      <search class="filters">
        <TextField label="Code, or a word" type="search" value={code} onChange={setCode} maxLength={128} />
      </search>
      <Panel
        title={counted(shown.length, 'code')}
        about={shown.length === all.length ? undefined : `Of ${all.length}.`}
      >
        {shown.length === 0 && <Nothing>No code is called so, and no explanation has the word.</Nothing>}
        <ul class="reasons">
          {shown.map(({ code: name, chapter, cells }) => (
            <li key={`${chapter} ${name}`}>
              <h3 class="mono">{name}</h3>
              <p class="aside">{chapter}</p>
              <dl>
                {cells.map(([column, text]) => (
                  <div key={column}>
                    <dt>{column}</dt>
                    <dd>{text}</dd>
                  </div>
                ))}
              </dl>
            </li>
          ))}
        </ul>
      </Panel>
    </Page>
  );
}

/** Those of validation stand in the guide to the map. */
const everyCode = () => [
  ...reasonCodes(guide),
  ...reasonCodes(mapGuide).filter(({ chapter }) => chapter === 'Validation codes'),
];
