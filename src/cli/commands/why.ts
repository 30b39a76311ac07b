import type { Command } from 'commander';
import { timestampMicros } from '../../clients/common/time.js';
import { type Event, ListEventsResponse } from '../../gen/writ/v1/audit_service.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { clean, type Output } from '../output.js';
import { pages } from '../pages.js';
import { protoJson } from '../proto-json.js';
import { momentText, several } from '../show.js';

const ID = /^[0-9a-f]{32}$/;
const MAX_EVENTS = 200;
/** One request has one lease; more have it only where a caller gave several the same id. */
const MAX_FOLLOWED = 16;

/** Events that name the lease, or the place in the queue, which a request got. */
const ASKED = ['lease_queued', 'lease_granted'];
/** What happens to that later without the request: a waiter's grant and a lease's end carry ids of other requests or none. */
const FATE = ['lease_granted', 'lease_ended'];

export function registerWhy(program: Command, cli: Cli): void {
  const why = program
    .command('why')
    .argument('<id>', 'a request id; else the id of a lease or a run')
    .description('say what happened to a request, from the log');
  action(why, cli, async ({ out, args: [id = ''], client }) => {
    const writ = await client('operator');
    const search = (filter: object) =>
      pages(
        (page) => writ.audit.listEvents({ ...filter, page }),
        (answer) => answer.events,
        MAX_EVENTS,
      );
    const byRequest = await search({ requestId: id });
    const named = byRequest.filter(({ kind }) => ASKED.includes(kind)).map(({ leaseId }) => leaseId);
    const leaseIds = [...new Set(named)].slice(0, MAX_FOLLOWED);
    const followed: Event[] = [];
    for (const leaseId of leaseIds) followed.push(...(await search({ leaseId, kinds: FATE })));
    let events = inOrder([...byRequest, ...followed]);
    if (events.length === 0 && ID.test(id)) events = await search({ leaseId: id });
    if (events.length === 0 && ID.test(id)) events = await search({ runId: id });
    if (events.length === 0) {
      const hint = 'Checks that were allowed leave no event, and neither do calls that were refused as invalid.';
      throw new CliError(EXIT.notFound, `The log has nothing by ${id}.`, hint);
    }
    out.result(
      () => protoJson(ListEventsResponse, { events, nextPageToken: '' }),
      () => {
        for (const event of events) showEvent(out, event);
        for (const leaseId of leaseIds) out.line(fateOf(leaseId, events));
        if (events.length >= MAX_EVENTS) out.note(`Only the first ${events.length} events are shown.`);
      },
    );
    return EXIT.ok;
  });
}

/** By revision, each once: a grant at once is found by the request and by its lease. */
function inOrder(events: readonly Event[]): Event[] {
  const byRevision = new Map(events.map((event) => [event.revision, event]));
  return [...byRevision.values()].sort((a, b) => (a.revision < b.revision ? -1 : 1));
}

/** What has become of a request that was queued or granted. */
function fateOf(leaseId: string, events: readonly Event[]): string {
  const find = (kind: string) => events.find((event) => event.kind === kind && event.leaseId === leaseId);
  const [queued, granted, ended] = [find('lease_queued'), find('lease_granted'), find('lease_ended')];
  const waited = queued === undefined ? '' : 'waited, ';
  if (ended === undefined) {
    if (granted === undefined) return `So far the request waits; its place: writ lease get ${leaseId}`;
    return `The request ${waited}was granted, and its lease has not ended: writ lease get ${leaseId}`;
  }
  const told = parse(ended.body) as { endReason?: string; reason?: string; refusal?: { kind?: string } } | null;
  const how = [told?.endReason ?? 'ended', told?.refusal?.kind, told?.reason]
    .filter((text) => (text ?? '') !== '')
    .join(', ');
  return granted === undefined
    ? `The request waited and was not granted: ${clean(how)}.`
    : `The request ${waited}was granted, and its lease has ended: ${clean(how)}.`;
}

/** One event in words: what, who, when, about what, and what its body says. */
export function showEvent(out: Output, event: Event): void {
  const time = timestampMicros(event.time);
  out.line(
    `${out.style(event.kind.replaceAll('_', ' '), 'bold')}  revision ${event.revision}, ${time === undefined ? '' : momentText(time)}`,
  );
  out.facts([
    ['  by', event.actor],
    ['  run', event.runId],
    ['  lease', event.leaseId],
    ['  resources', several(event.resources, 8)],
    ['  requests', several(event.requestIds, 4)],
    ...bodyFacts(event.body).map(([name, value]) => [`  ${name}`, value] as const),
  ]);
  out.line();
}

/** Parts of a body that say something by themselves; the rest is in the export. */
const TELLING = [
  'refusal',
  'message',
  'endReason',
  'reason',
  'state',
  'purpose',
  'why',
  'version',
  'blockers',
  'denials',
];

function bodyFacts(body: string): [string, string][] {
  const json = parse(body);
  if (typeof json !== 'object' || json === null) return [];
  const facts = json as Record<string, unknown>;
  return TELLING.flatMap((name) => {
    const value = facts[name];
    if (value === undefined || value === null || value === '') return [];
    const text = inWords(value);
    return text === '' ? [] : [[name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`), text]];
  });
}

/** A list or an object as `name value` pairs, for people; the exact body is in --json and in an export. */
function inWords(value: unknown): string {
  if (Array.isArray(value)) return value.map(inWords).join('; ');
  if (typeof value !== 'object' || value === null) return String(value ?? '');
  return Object.entries(value)
    .map(([name, one]) => [name, inWords(one)] as const)
    .filter(([, text]) => text !== '' && text !== 'false')
    .map(([name, text]) => `${name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${text}`)
    .join(', ');
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
