import { useState } from 'preact/hooks';
import type { Pages } from '../api/pages.js';
import type { LogEvent } from '../api/shapes.js';
import { bodyOf } from '../pure/event-body.js';
import { lineOf } from '../pure/event-words.js';
import { visible } from '../pure/foreign-text.js';
import { Link } from '../router.js';
import { Nothing } from './page.js';
import { ReadMore } from './read-more.js';
import { Exactly, Foreign, LeaseLink, Reason, Resource, RunLink } from './text.js';

interface EventsProps {
  readonly pages: Pages<LogEvent>;
  /** What the screen is about anyway, and need not be said in each row. */
  readonly without?: 'run' | 'lease' | 'resource';
  readonly nothing: string;
}

const SHOWN_RESOURCES = 3;

/** Events, one to a row; each opens to all that the log has of it. */
export function Events({ pages, without, nothing }: EventsProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const turn = (revision: string) => {
    const next = new Set(open);
    if (!next.delete(revision)) next.add(revision);
    setOpen(next);
  };
  if (!pages.loading && pages.rows.length === 0 && pages.problem === null) return <Nothing>{nothing}</Nothing>;
  return (
    <>
      <ol class="events">
        {pages.rows.map((event) => (
          <EventRow
            key={event.revision}
            event={event}
            without={without}
            open={open.has(event.revision)}
            onTurn={() => turn(event.revision)}
          />
        ))}
      </ol>
      <ReadMore pages={pages} what="events" />
    </>
  );
}

interface EventRowProps {
  readonly event: LogEvent;
  readonly without: EventsProps['without'];
  readonly open: boolean;
  readonly onTurn: () => void;
}

function EventRow({ event, without, open, onTurn }: EventRowProps) {
  const { words, said, tone, code } = lineOf(event);
  const resources = event.resources ?? [];
  const isPattern = event.kind.startsWith('pattern_');
  return (
    <li class="event">
      <button
        type="button"
        class="quiet revision"
        aria-expanded={open}
        aria-label={`Event ${event.revision}, ${open ? 'close' : 'open'}`}
        onClick={onTurn}
      >
        {event.revision}
      </button>
      <span class="event-time">
        <Exactly at={event.time} />
      </span>
      <div class="event-words">
        <p>
          <span class={`mark tone-${tone}`} aria-hidden="true" />
          {code === '' ? <Foreign text={words} /> : <EventWords words={words} code={code} />}{' '}
          {without !== 'resource' &&
            resources.slice(0, SHOWN_RESOURCES).map((name) => (
              <span key={name} class="event-resource">
                {isPattern ? <Foreign text={name} class="mono" /> : <Resource name={name} />}{' '}
              </span>
            ))}
          {without !== 'resource' && resources.length > SHOWN_RESOURCES && (
            <span class="aside">and {resources.length - SHOWN_RESOURCES} more</span>
          )}
        </p>
        {said !== '' && <Foreign text={said} class="clamped aside" />}
        <p class="aside">
          <Foreign text={event.actor || 'nobody'} />
          {without !== 'run' && event.runId && (
            <>
              {' · run '}
              <RunLink id={event.runId} />
            </>
          )}
          {without !== 'lease' && event.leaseId && (
            <>
              {' · lease '}
              <LeaseLink id={event.leaseId} />
            </>
          )}
        </p>
        {open && <EventDetail event={event} />}
      </div>
    </li>
  );
}

/** The words of an event, with its code as the way to what it means. */
function EventWords({ words, code }: { readonly words: string; readonly code: string }) {
  const said = code.toLowerCase().replaceAll('_', ' ');
  const at = words.lastIndexOf(said);
  if (at < 0) return <Foreign text={words} />;
  return (
    <>
      <Foreign text={words.slice(0, at)} />
      <Reason code={code} />
      <Foreign text={words.slice(at + said.length)} />
    </>
  );
}

function EventDetail({ event }: { readonly event: LogEvent }) {
  const requestIds = event.requestIds ?? [];
  return (
    <dl class="event-detail">
      <dt>Kind</dt>
      <dd class="mono">{event.kind}</dd>
      {(event.resources ?? []).length > SHOWN_RESOURCES && (
        <>
          <dt>Resources</dt>
          <dd>
            {event.resources?.map((name) => (
              <div key={name}>
                <Resource name={name} />
              </div>
            ))}
          </dd>
        </>
      )}
      {requestIds.length > 0 && (
        <>
          <dt>Requests</dt>
          <dd>
            {requestIds.map((id) => (
              <span key={id}>
                <Link to="/log" query={{ request: id }} class="id" title="Why: all that the log has of this request">
                  <bdi>{visible(id)}</bdi>
                </Link>{' '}
              </span>
            ))}
          </dd>
        </>
      )}
      <dt>Body</dt>
      <dd>
        <pre>
          <bdi>{visible(JSON.stringify(bodyOf(event), null, 2))}</bdi>
        </pre>
      </dd>
      <dt>Hash</dt>
      <dd class="mono">{event.hash}</dd>
    </dl>
  );
}
