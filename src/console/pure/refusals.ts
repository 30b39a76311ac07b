import type { LogEvent } from '../api/shapes.js';
import { bodyOf, listAt, textAt } from './event-body.js';
import { millisOf } from './moments.js';

/** Refusals of some time, by reason: which grow, and which were there all along. */
export interface ReasonCount {
  /** As the log has it, in lower case. */
  readonly reason: string;
  /** What was refused: a request, a renewal, a credential or a write. */
  readonly what: 'acquire' | 'renewal' | 'credential' | 'write';
  readonly total: number;
  /** By pieces of the time, the oldest first. */
  readonly buckets: readonly number[];
}

/** Kinds of events that record refusals. */
export const REFUSAL_KINDS = ['acquire_refused', 'renewals_refused', 'credentials_refused', 'checks_denied'] as const;

interface Refused {
  readonly what: ReasonCount['what'];
  readonly reason: string;
  readonly count: number;
}

function refusalsOf(event: LogEvent): readonly Refused[] {
  const body = bodyOf(event);
  switch (event.kind) {
    case 'acquire_refused':
      return [{ what: 'acquire', reason: textAt(body, 'refusal'), count: 1 }];
    case 'renewals_refused':
      return listAt(body, 'refusals').map((one) => ({ what: 'renewal', reason: textAt(one, 'refusal'), count: 1 }));
    case 'credentials_refused':
      return listAt(body, 'refusals').map((one) => ({ what: 'credential', reason: textAt(one, 'refusal'), count: 1 }));
    case 'checks_denied':
      return listAt(body, 'denials').map((one) => ({
        what: 'write',
        reason: textAt(one, 'reason'),
        count: Number(textAt(one, 'count')) || 1,
      }));
    default:
      return [];
  }
}

/** Those of the time from `fromMs` to `toMs`, cut into pieces; the most frequent first. */
export function refusalsByReason(
  events: readonly LogEvent[],
  fromMs: number,
  toMs: number,
  pieces: number,
): readonly ReasonCount[] {
  const counts = new Map<string, { what: ReasonCount['what']; reason: string; total: number; buckets: number[] }>();
  for (const event of events) {
    const at = millisOf(event.time) ?? 0;
    if (at < fromMs || at > toMs) continue;
    const piece = Math.min(pieces - 1, Math.floor(((at - fromMs) / (toMs - fromMs)) * pieces));
    for (const { what, reason, count } of refusalsOf(event)) {
      const key = `${what} ${reason}`;
      const known = counts.get(key) ?? { what, reason, total: 0, buckets: new Array<number>(pieces).fill(0) };
      known.total += count;
      known.buckets[piece] = (known.buckets[piece] ?? 0) + count;
      counts.set(key, known);
    }
  }
  return [...counts.values()].sort((a, b) => b.total - a.total || (a.reason < b.reason ? -1 : 1));
}
