import { post } from '../api/client.js';
import type { Answer, Lease } from '../api/shapes.js';
import { ActDialog } from '../parts/act-dialog.js';
import { Behind } from '../parts/behind.js';
import { Reason, Resource, RunLink } from '../parts/text.js';
import { counted, endReason } from '../pure/words.js';
import { Effective } from './effective.js';

type Revoked = Answer<'RevokeLeaseResponse'>;

const SHOWN = 8;

/** Ends a lease, or takes a request out of the queue. */
export function RevokeLease({ lease, onClose }: { readonly lease: Lease; readonly onClose: () => void }) {
  const entries = lease.entries ?? [];
  const waiting = lease.state === 'LEASE_STATE_WAITING';
  const delayed = entries.some(({ validation = '' }) => /VIEW|LOCAL/.test(validation));
  return (
    <ActDialog
      title={waiting ? 'Take this request out of the queue' : 'Revoke this lease'}
      button={waiting ? 'Withdraw it' : 'Revoke the lease'}
      danger
      act={(reason) => post<Revoked>(`/v1/leases/${lease.leaseId}/revoke`, { reason })}
      result={(value) => (
        <>
          <p>
            It ended as <Reason code={endReason(value.endReason)} />.
          </p>
          <Effective at={value.effectiveAt} open={value.openWrites ?? []} />
        </>
      )}
      onClose={onClose}
    >
      <div>
        <p>
          <strong>What this does:</strong>
        </p>
        <ul class="bullets">
          {waiting ? (
            <li>Its place in the queue is given up; those behind it move up.</li>
          ) : (
            <li>
              Its tokens are refused from the moment the answer is here. Run <RunLink id={lease.runId} /> is told, and
              may ask anew, behind those who wait: to keep it from that, stop the run or freeze the resource.
            </li>
          )}
          <li>
            {waiting ? 'It asked for ' : 'It gives up '}
            {counted(entries.length, 'resource')}:{' '}
            {entries.slice(0, SHOWN).map(({ resource = '' }, index) => (
              <>
                {index > 0 && ', '}
                <Resource name={resource} />
              </>
            ))}
            {entries.length > SHOWN && ` and ${entries.length - SHOWN} more`}.
          </li>
          {!waiting && <Behind ends={(holder) => holder.leaseId === lease.leaseId} />}
          {delayed && !waiting && (
            <li>
              Some of them are of kinds whose targets do not ask each time: nobody else is granted those before the last
              view or credential is dead.
            </li>
          )}
          {!waiting && <li>A tracked write that is open leaves its resource in doubt until its outcome is known.</li>}
        </ul>
      </div>
    </ActDialog>
  );
}
