import { useMemo } from 'preact/hooks';
import type { Lease } from '../../api/shapes.js';
import { databaseNow, useSecond } from '../../clock.js';
import { Choice } from '../../parts/field.js';
import { LongList } from '../../parts/long-list.js';
import { Nothing } from '../../parts/page.js';
import { Countdown, LeaseLink, Resource, RunLink } from '../../parts/text.js';
import { byExpiry } from '../../pure/lease-filter.js';
import { inWords, lengthMs, millisOf, urgencyOf } from '../../pure/moments.js';
import { barOf } from '../../pure/timeline.js';
import { useParameter } from '../../router.js';

const ROW_HEIGHT = 36;
const SPANS = [
  ['60s', '1 minute'],
  ['300s', '5 minutes'],
  ['1800s', '30 minutes'],
  ['7200s', '2 hours'],
] as const;
const USUAL = '300s';
/** How much of the span lies behind us. */
const PAST_SHARE = 0.3;

/** Leases by the time at which they end, and how long they have been held. */
export function LeaseTimeline({ leases }: { readonly leases: readonly Lease[] }) {
  const [named, setSpan] = useParameter('span');
  const span = SPANS.find(([length]) => length === named)?.[0] ?? USUAL;
  const spanMs = lengthMs(span) ?? 0;
  const sorted = useMemo(() => byExpiry(leases), [leases]);
  if (sorted.length === 0) return <Nothing>Nothing is held.</Nothing>;
  return (
    <>
      <div class="body timeline-head">
        <Choice label="Span" value={span} onChange={(next) => setSpan(next === USUAL ? '' : next)} options={SPANS} />
        <p class="hint">
          From {inWords(spanMs * PAST_SHARE)} ago to {inWords(spanMs * (1 - PAST_SHARE))} ahead. The line is now, the
          end of a bar is the expiry, a tick the moment past which no renewal moves it.
        </p>
      </div>
      <LongList
        label="Leases by expiry"
        class="lease-timeline"
        rows={sorted}
        keyOf={({ leaseId }) => leaseId}
        rowHeight={ROW_HEIGHT}
        columns={['Left', 'Resources', 'Run', 'Lease', 'Time']}
      >
        {(lease) => <TimelineRow lease={lease} spanMs={spanMs} />}
      </LongList>
    </>
  );
}

function TimelineRow({ lease, spanMs }: { readonly lease: Lease; readonly spanMs: number }) {
  useSecond();
  const now = databaseNow();
  const from = now - spanMs * PAST_SHARE;
  const bar = barOf(lease, from, from + spanMs);
  const left = (millisOf(lease.expiresAt) ?? 0) - now;
  const more = (lease.entries?.length ?? 0) - 1;
  return (
    <>
      <td>
        <Countdown until={lease.expiresAt} />
      </td>
      <td>
        <Resource name={lease.entries?.[0]?.resource ?? ''} />
        {more > 0 && <span class="aside"> +{more}</span>}
      </td>
      <td>
        <RunLink id={lease.runId} />
      </td>
      <td>
        <LeaseLink id={lease.leaseId} />
      </td>
      <td class="time">
        <svg viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">
          <rect
            class={`bar urgency-${urgencyOf(left)}`}
            x={bar.from}
            y={5}
            width={Math.max(2, bar.to - bar.from)}
            height={10}
          />
          {bar.limit !== null && <rect class="limit" x={bar.limit} y={2} width={2} height={16} />}
          <rect class="now" x={PAST_SHARE * 1_000} y={0} width={1.5} height={20} />
        </svg>
      </td>
    </>
  );
}
