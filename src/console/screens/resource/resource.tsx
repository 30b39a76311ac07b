import { useState } from 'preact/hooks';
import { FreezePattern, ThawPattern } from '../../acts/freeze.js';
import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import { usePages } from '../../api/pages.js';
import type { Answer, Freeze, LogEvent } from '../../api/shapes.js';
import { Events } from '../../parts/events.js';
import { TextField } from '../../parts/field.js';
import { Page, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Copy, Foreign } from '../../parts/text.js';
import { useMay } from '../../principal.js';
import { shortened, visible } from '../../pure/foreign-text.js';
import { changeParameters, useParameter } from '../../router.js';
import { Kind } from './kind.js';
import { Rules } from './rules.js';
import { Tokens } from './tokens.js';
import { Who } from './who.js';

type Blockers = Answer<'FindBlockersResponse'>;

type EventsPage = Answer<'ListEventsResponse'>;

const TITLE_LENGTH = 40;
const PAGE_SIZE = 200;

/** One resource: `who` holds it, waits for it, and what there is to know of it. */
export function ResourceScreen() {
  const [name] = useParameter('name');
  return name === '' ? <AskName /> : <OneResource name={name} />;
}

function AskName() {
  const [text, setText] = useState('');
  return (
    <Page title="Resource" about="Who holds it, who waits for it, and by which rules others meet it.">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          changeParameters({ name: text.trim() });
        }}
      >
        <TextField
          label="Resource"
          value={text}
          onChange={setText}
          required
          maxLength={1024}
          hint="A path such as release/prod-eu, or an alias of the conflict map."
        />
        <button type="submit" class="primary">
          Show
        </button>
      </form>
    </Page>
  );
}

function OneResource({ name }: { readonly name: string }) {
  const may = useMay();
  const [freezing, setFreezing] = useState(false);
  const [thawed, setThawed] = useState<Freeze | null>(null);
  const { value, problem } = useData(
    `blockers ${name}`,
    (signal) => get<Blockers>('/v1/blockers', { signal, query: { resource: name } }),
    { touchedBy: ({ kind }) => kind !== 'leases_renewed' && kind !== 'credentials_issued' },
  );
  const path = value?.resource || name;
  const readsLog = may('AuditService/ListEvents');
  const events = usePages<LogEvent>(
    readsLog && value !== undefined ? '/v1/events' : null,
    { resource: path, newest_first: 'true' },
    {
      rowsOf: (page) => (page as EventsPage).events ?? [],
      pageSize: PAGE_SIZE,
      touchedBy: ({ resources }) => resources?.includes(path) ?? false,
    },
  );
  return (
    <Page
      title={shortened(visible(name), TITLE_LENGTH)}
      heading={
        <>
          <Foreign text={path} class="mono" /> <Copy text={path} label="the resource's name" />
        </>
      }
      about={path !== name && <>An alias: {visible(name)}</>}
      actions={
        may('LeaseService/Freeze') && (
          <button type="button" class="end" onClick={() => setFreezing(true)}>
            Freeze…
          </button>
        )
      }
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {value !== undefined && (
        <>
          <Who
            blockers={value.blockers ?? []}
            more={value.more === true}
            freezes={value.freezes ?? []}
            {...(may('LeaseService/Thaw') && { onThaw: setThawed })}
          />
          <div class="columns">
            <Kind name={path} events={events.rows} />
            <Rules rules={value.rules ?? []} />
          </div>
          {readsLog && <Tokens name={path} events={events.rows} loading={events.loading} complete={!events.more} />}
        </>
      )}
      {readsLog && value !== undefined && (
        <Panel title="What happened to it" about="Newest first.">
          <Events pages={events} without="resource" nothing="The log does not name it." />
        </Panel>
      )}
      {freezing && <FreezePattern pattern={path} onClose={() => setFreezing(false)} />}
      {thawed !== null && <ThawPattern freeze={thawed} onClose={() => setThawed(null)} />}
    </Page>
  );
}
