import { useState } from 'preact/hooks';
import { RevokeLease } from '../../acts/revoke-lease.js';
import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import { usePages } from '../../api/pages.js';
import type { Answer, Lease, LogEvent } from '../../api/shapes.js';
import { Events } from '../../parts/events.js';
import { OpenWrites } from '../../parts/open-writes.js';
import { Fact, Facts, Page, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Copy, Countdown, Exactly, Foreign, LeaseLink, Reason, RunLink, State } from '../../parts/text.js';
import { useMay } from '../../principal.js';
import { TELLING_KINDS } from '../../pure/event-words.js';
import { inWords, lengthMs } from '../../pure/moments.js';
import { endReason, leaseState, shortId } from '../../pure/words.js';
import { LeaseEntries } from './lease-entries.js';

type EventsPage = Answer<'ListEventsResponse'>;

type InDoubtPage = Answer<'ListInDoubtResponse'>;

/** One lease, or one waiting request. */
export function LeaseScreen({ id }: { readonly id: string }) {
  const may = useMay();
  const [revoking, setRevoking] = useState(false);
  const { value, problem } = useData(
    `lease ${id}`,
    (signal) => get<{ lease?: Lease }>(`/v1/leases/${id}`, { signal }),
    {
      touchedBy: ({ leaseId, kind }) => leaseId === id || kind === 'leases_renewed' || kind === 'database_identified',
    },
  );
  const events = usePages<LogEvent>(
    may('AuditService/ListEvents') ? '/v1/events' : null,
    { lease_id: id, newest_first: 'true', kinds: TELLING_KINDS },
    {
      rowsOf: (page) => (page as EventsPage).events ?? [],
      touchedBy: ({ leaseId }) => leaseId === id,
    },
  );
  const lease = value?.lease;
  const ended = lease?.state === 'LEASE_STATE_ENDED';
  const waiting = lease?.state === 'LEASE_STATE_WAITING';
  return (
    <Page
      title={`Lease ${shortId(id)}`}
      heading={
        <>
          {waiting ? 'Waiting request' : 'Lease'} <span class="mono">{id}</span>{' '}
          <Copy text={id} label="the lease's id" />
        </>
      }
      about={lease?.purpose && <Foreign text={lease.purpose} class="clamped" />}
      actions={
        lease !== undefined &&
        !ended &&
        may('LeaseService/RevokeLease') && (
          <button type="button" class="end" onClick={() => setRevoking(true)}>
            {waiting ? 'Withdraw…' : 'Revoke…'}
          </button>
        )
      }
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {lease !== undefined && (
        <>
          <LeaseFacts lease={lease} />
          <LeaseEntries lease={lease} />
          {may('LeaseService/ListInDoubt') && <LeaseWrites lease={lease} />}
        </>
      )}
      {may('AuditService/ListEvents') && (
        <Panel title="What happened to it" about="Newest first, without renewals.">
          <Events pages={events} without="lease" nothing="The log has nothing of this lease." />
        </Panel>
      )}
      {revoking && lease !== undefined && <RevokeLease lease={lease} onClose={() => setRevoking(false)} />}
    </Page>
  );
}

function LeaseFacts({ lease }: { readonly lease: Lease }) {
  const progress = lengthMs(lease.progressWindow);
  const ttl = lengthMs(lease.ttl);
  const asked = lengthMs(lease.requestedTtl);
  return (
    <Panel title="Life">
      <Facts>
        <Fact name="State">
          <State code={leaseState(lease.state)} />
          {endReason(lease.endReason) !== '' && (
            <div>
              ended as <Reason code={endReason(lease.endReason)} />
            </div>
          )}
        </Fact>
        <Fact name="Run">
          <RunLink id={lease.runId} whole />
        </Fact>
        {lease.expiresAt && !lease.endedAt && (
          <Fact name="Ends unless renewed, in">
            <Countdown until={lease.expiresAt} />
            <div class="aside">
              <Exactly at={lease.expiresAt} />
            </div>
          </Fact>
        )}
        {ttl !== null && (
          <Fact name="A grant or renewal lasts">
            {inWords(ttl)}
            {asked !== null && (
              <div class="tone-warn">
                asked for {inWords(asked)}: cut to what its kinds, or the run's ceiling, allow
              </div>
            )}
          </Fact>
        )}
        {lease.maxExpiresAt && (
          <Fact name="No renewal moves it past">
            <Exactly at={lease.maxExpiresAt} />
          </Fact>
        )}
        {lease.grantedAt && (
          <Fact name="Granted">
            <Exactly at={lease.grantedAt} />
          </Fact>
        )}
        {lease.endedAt && (
          <Fact name="Ended">
            <Exactly at={lease.endedAt} />
          </Fact>
        )}
        {lease.lockDelayUntil && (
          <Fact name="Kept from others until">
            <Exactly at={lease.lockDelayUntil} />
          </Fact>
        )}
        <Fact name="Generation">{lease.generation ?? 0}</Fact>
        {progress !== null && <Fact name="Must show progress within">{inWords(progress)}</Fact>}
        {lease.delegatedFrom && (
          <Fact name="Part of">
            <LeaseLink id={lease.delegatedFrom} />
          </Fact>
        )}
      </Facts>
    </Panel>
  );
}

/** Its writes that were let in, and whose outcome is not known. */
function LeaseWrites({ lease }: { readonly lease: Lease }) {
  const { value } = useData(
    `writes of ${lease.leaseId}`,
    (signal) =>
      get<InDoubtPage>('/v1/in-doubt', {
        signal,
        query: { run_id: lease.runId, include_open: 'true', page_size: '1000' },
      }),
    { touchedBy: ({ runId }) => runId === lease.runId },
  );
  const writes = (value?.writes ?? []).filter(({ leaseId }) => leaseId === lease.leaseId);
  if (writes.length === 0) return null;
  return (
    <Panel title="Writes whose outcome is not known" count={writes.length} class="urgent">
      <OpenWrites writes={writes} withRun={false} />
    </Panel>
  );
}
