import { useState } from 'preact/hooks';
import { get } from '../api/client.js';
import type { Answer } from '../api/shapes.js';
import { Dialog } from '../parts/dialog.js';
import { LeaseLink, RunLink } from '../parts/text.js';
import { useMay } from '../principal.js';
import { go, hrefOf } from '../router.js';

export const FIND_ID = 'find';

/** All of an id, or its beginning, as the screens shorten it. */
const ID = /^[0-9a-f]{4,32}$/;

type Ids = Answer<'FindIdsResponse'>;

type Events = Answer<'ListEventsResponse'>;

/** One field for everything that has a name. */
export function Find() {
  const may = useMay();
  const [text, setText] = useState('');
  const [several, setSeveral] = useState<{ readonly beginning: string; readonly ids: Ids } | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const wanted = text.trim();
    if (wanted === '') return;
    setText('');
    // The heading of where one comes to takes the focus.
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    const ids = await idsLike(wanted, may('AuditService/FindIds'));
    const [one, another] = placesOf(ids);
    if (another !== undefined) setSeveral({ beginning: wanted, ids });
    else if (one !== undefined) go(one);
    else if (await isRequest(wanted, may('AuditService/ListEvents'))) go(hrefOf('/log', { request: wanted }));
    else go(hrefOf('/resource', { name: wanted }));
  };
  return (
    <search class="find">
      <form onSubmit={(event) => void submit(event)}>
        <input
          id={FIND_ID}
          type="search"
          aria-label="Find a resource, a run, a lease or a request"
          placeholder="Resource, run, lease or request…"
          autocomplete="off"
          spellcheck={false}
          maxLength={1024}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <kbd>/</kbd>
      </form>
      {several !== null && <Several {...several} onClose={() => setSeveral(null)} />}
    </search>
  );
}

/** Runs and leases whose ids are, or begin, so; without the log only a whole id leads anywhere. */
async function idsLike(text: string, mayFind: boolean): Promise<Ids> {
  if (!ID.test(text)) return {};
  if (mayFind) return get<Ids>('/v1/ids', { query: { beginning: text } }).catch(() => ({}));
  if (text.length < 32) return {};
  const isRun = await get(`/v1/runs/${text}`).then(
    () => true,
    () => false,
  );
  return isRun ? { runIds: [text] } : { leaseIds: [text] };
}

const placesOf = ({ runIds = [], leaseIds = [] }: Ids): readonly string[] => [
  ...runIds.map((id) => hrefOf(`/runs/${id}`)),
  ...leaseIds.map((id) => hrefOf(`/leases/${id}`)),
];

/** Whether the log has something of a request with this id. */
async function isRequest(text: string, mayRead: boolean): Promise<boolean> {
  if (!mayRead || text.length > 128) return false;
  const found = await get<Events>('/v1/events', { query: { request_id: text, page_size: '1' } }).catch(
    (): Events => ({}),
  );
  return (found.events ?? []).length > 0;
}

interface SeveralProps {
  readonly beginning: string;
  readonly ids: Ids;
  readonly onClose: () => void;
}

/** More than one id begins so: which was meant? */
function Several({ beginning, ids: { runIds = [], leaseIds = [], more }, onClose }: SeveralProps) {
  return (
    <Dialog title={`Several begin with ${beginning}`} onClose={onClose}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: whoever follows a link, by a key or a click, is done with the question. */}
      <ul class="run-list" onClick={onClose}>
        {runIds.map((id) => (
          <li key={id}>
            run <RunLink id={id} whole />
          </li>
        ))}
        {leaseIds.map((id) => (
          <li key={id}>
            lease <LeaseLink id={id} whole />
          </li>
        ))}
      </ul>
      {more === true && <p class="hint">There are more; type more of the id.</p>}
    </Dialog>
  );
}
