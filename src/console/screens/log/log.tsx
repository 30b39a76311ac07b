import { useState } from 'preact/hooks';
import { addressOfCall } from '../../api/client.js';
import { usePages } from '../../api/pages.js';
import type { Answer, LogEvent } from '../../api/shapes.js';
import { useRested } from '../../clock.js';
import { Events } from '../../parts/events.js';
import { Page, Panel } from '../../parts/page.js';
import { useMay } from '../../principal.js';
import { lineOf, TELLING_KINDS } from '../../pure/event-words.js';
import type { Query } from '../../pure/paths.js';
import { counted } from '../../pure/words.js';
import { useNamespace, useParameter } from '../../router.js';
import { LogFilters } from './log-filters.js';
import { VerifyChain } from './verify-chain.js';
import './log.css';

type EventsPage = Answer<'ListEventsResponse'>;

const REST_MS = 300;
const PAGE_SIZE = 200;

/** The log: what happened, who did it, and why a request was answered as it was. */
export function Log() {
  const namespace = useNamespace();
  const may = useMay();
  const [verifying, setVerifying] = useState(false);
  const [run] = useParameter('run');
  const [lease] = useParameter('lease');
  const [resource] = useParameter('resource');
  const [kind] = useParameter('kind');
  const [request] = useParameter('request');
  const [actor] = useParameter('actor');
  const [reason] = useParameter('reason');
  const [order] = useParameter('order');
  const asked = useRested(
    JSON.stringify({
      run_id: run,
      lease_id: lease,
      resource,
      kinds: kind === '' ? TELLING_KINDS : kind === 'any' ? '' : kind,
      request_id: request,
      newest_first: order === 'oldest' ? '' : 'true',
    }),
    REST_MS,
  );
  const pages = usePages<LogEvent>('/v1/events', JSON.parse(asked) as Query, {
    rowsOf: (page) => (page as EventsPage).events ?? [],
    pageSize: PAGE_SIZE,
    ...(order !== 'oldest' && { touchedBy: () => true }),
  });
  const named = kind !== '' && kind !== 'any';
  const isFiltered = named || [run, lease, resource, request, actor, reason].some((text) => text !== '');
  const rows = pages.rows.filter((event) => fits(event, actor, reason));
  const hidden = pages.rows.length - rows.length;
  return (
    <Page
      title="Log"
      about="Every state change and every refused attempt, in order, each tied to the one before."
      actions={
        <>
          <button type="button" onClick={() => setVerifying(!verifying)} aria-expanded={verifying}>
            Verify the chain
          </button>
          {may('AuditService/ExportEvents') && (
            <a class="button" href={addressOfCall('/v1/events/export', { namespace })} download>
              Export
            </a>
          )}
        </>
      }
    >
      {verifying && <VerifyChain namespace={namespace} />}
      <LogFilters />
      <Panel
        title={counted(rows.length, 'event')}
        about={aboutOf({
          unread: pages.rows.length === 0 && (pages.loading || pages.problem !== null),
          more: pages.more,
          hidden,
          isFiltered,
          upkeep: kind === '',
        })}
      >
        <Events pages={{ ...pages, rows }} nothing={nothingFits(hidden, run, lease)} />
      </Panel>
    </Page>
  );
}

/** The coordinator does not search by these: they are about what was read. */
function fits(event: LogEvent, actor: string, reason: string): boolean {
  if (actor !== '' && !(event.actor ?? '').includes(actor)) return false;
  if (reason === '') return true;
  const { words, said, code } = lineOf(event);
  const wanted = reason.toLowerCase();
  return code.toLowerCase() === wanted || `${words} ${said}`.toLowerCase().includes(wanted.replaceAll('_', ' '));
}

const WHOLE_ID = 32;

function nothingFits(hidden: number, run: string, lease: string): string {
  if (hidden > 0) return 'None of those that were read fits; read more.';
  const short = [run, lease].some((id) => id !== '' && id.length < WHOLE_ID);
  const how = ' A run or a lease is looked for by its whole id; the search above finds it by the beginning.';
  return `Nothing in the log fits.${short ? how : ''}`;
}

interface Read {
  /** Nothing of it was read yet. */
  readonly unread: boolean;
  readonly more: boolean;
  /** Were read, and do not fit what only this page looks for. */
  readonly hidden: number;
  readonly isFiltered: boolean;
  /** Left out: what the coordinator does all the time. */
  readonly upkeep: boolean;
}

function aboutOf({ unread, more, hidden, isFiltered, upkeep }: Read): string {
  if (unread) return 'Not read yet.';
  const besides = upkeep ? ', upkeep left out' : '';
  const read = more ? 'There are more.' : `${isFiltered ? 'All that fit' : 'All that there is'}${besides}.`;
  return hidden === 0 ? read : `${hidden.toLocaleString('en')} of those read do not fit actor and reason. ${read}`;
}
