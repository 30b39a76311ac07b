import type { LogEvent } from '../api/shapes.js';
import { type Body, bodyOf, listAt, recordAt, textAt } from './event-body.js';

/** What the log tells of one resource. */

/** A token that was given out for it. */
export interface TokenGiven {
  readonly token: string;
  readonly revision: string;
  readonly time: string;
  readonly runId: string;
  readonly leaseId: string;
  readonly access: string;
  /** Why: it was granted, amended, or came back from a child run. */
  readonly cause: string;
}

/** What a target said last about its version. */
export interface ReportedVersion {
  readonly version: string;
  readonly time: string;
  readonly runId: string;
  readonly target: string;
  readonly result: string;
}

/** Tokens of a resource, the newest first. An entry that was kept keeps its token, and is told once. */
export function tokensOf(events: readonly LogEvent[], resource: string): readonly TokenGiven[] {
  const given = new Map<string, TokenGiven>();
  for (const event of [...events].sort((a, b) => Number(a.revision) - Number(b.revision))) {
    const body = bodyOf(event);
    for (const entry of entriesOf(event.kind, body)) {
      const token = textAt(entry, 'token');
      if (textAt(entry, 'resource') !== resource || token === '' || token === '0' || given.has(token)) continue;
      given.set(token, {
        token,
        revision: event.revision,
        time: event.time,
        runId: event.runId ?? '',
        leaseId: event.leaseId ?? '',
        access: textAt(entry, 'access'),
        cause: event.kind === 'lease_amended' ? textAt(body, 'cause') : (CAUSES[event.kind] ?? ''),
      });
    }
  }
  return [...given.values()].reverse();
}

const CAUSES: Readonly<Record<string, string>> = { lease_granted: 'granted', lease_reexpanded: 'by a new map' };

function entriesOf(kind: string, body: Body): readonly Body[] {
  if (kind === 'lease_granted') return listAt(recordAt(body, 'lease'), 'entries');
  return kind === 'lease_amended' || kind === 'lease_reexpanded' ? listAt(body, 'entries') : [];
}

/** Null: no target has reported one, as far as these events go. */
export function lastVersionOf(events: readonly LogEvent[], resource: string): ReportedVersion | null {
  let last: ReportedVersion | null = null;
  let newest = -1;
  for (const event of events) {
    if (event.kind !== 'writes_reported' || Number(event.revision) < newest) continue;
    const body = bodyOf(event);
    const write = listAt(body, 'writes').find(
      (one) => textAt(one, 'resource') === resource && textAt(one, 'newVersion') !== '',
    );
    if (write === undefined) continue;
    newest = Number(event.revision);
    last = {
      version: textAt(write, 'newVersion'),
      time: event.time,
      runId: event.runId ?? '',
      target: textAt(body, 'target'),
      result: textAt(write, 'result'),
    };
  }
  return last;
}
