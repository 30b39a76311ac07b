import type { Command } from 'commander';
import { timestampMicros } from '../../clients/common/time.js';
import { protoJson } from '../../contract/proto-json.js';
import { digestIn, ERASED } from '../../engine/event-texts.js';
import { type Event, ListEventsResponse } from '../../gen/writ/v1/audit_service.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { clean, type Output } from '../output.js';
import { pages } from '../pages.js';
import { momentText, several } from '../show.js';
import { wholeId } from '../whole-id.js';

const ID = /^[0-9a-f]{32}$/;
const MAX_EVENTS = 200;
/** One request has one lease; more have it only where a caller gave several the same id. */
const MAX_FOLLOWED = 16;

/** Events that name the lease, or the place in the queue, which a request got. */
const ASKED = ['lease_queued', 'lease_granted'];
/** What happens to that later without the request: a waiter's grant and a lease's end carry ids of other requests or none. */
const FATE = ['lease_granted', 'lease_amended', 'lease_ended'];

export function registerWhy(program: Command, cli: Cli): void {
  const why = program
    .command('why')
    .argument('<id>', 'a request id; else the id of a lease or a run, or its beginning')
    .description('say what happened to a request, a lease or a run, from the log: also which writes were refused');
  action(why, cli, async ({ out, args: [asked = ''], client }) => {
    const writ = await client('operator');
    const search = (filter: object) =>
      pages(
        (page) => writ.audit.listEvents({ ...filter, page }),
        (answer) => answer.events,
        MAX_EVENTS,
      );
    const byRequest = await search({ requestId: asked });
    const id = byRequest.length > 0 ? asked : await wholeId(writ, asked, ['run', 'lease']);
    const named = byRequest.filter(({ kind }) => ASKED.includes(kind)).map(({ leaseId }) => leaseId);
    const leaseIds = [...new Set(named)].slice(0, MAX_FOLLOWED);
    const followed: Event[] = [];
    for (const leaseId of leaseIds) followed.push(...(await search({ leaseId, kinds: FATE })));
    let events = inOrder([...byRequest, ...followed]);
    if (events.length === 0 && ID.test(id)) events = await search({ leaseId: id });
    if (events.length === 0 && ID.test(id)) events = await search({ runId: id });
    if (events.length === 0) {
      const hint =
        'No event is left by checks that were allowed, but of tracked actions; by calls that were refused as invalid, or could not be decided; and by what the gate of a service refused without asking: no route (unrouted), a credential that its own verifier refused. Of those the log of that service, or gateway, tells. A denial may take a second to be there.';
      throw new CliError(EXIT.notFound, `The log has nothing by ${id}.`, hint);
    }
    out.result(
      () => protoJson(ListEventsResponse, { events, nextPageToken: '', firstRevision: 0n }),
      () => {
        for (const event of events) showEvent(out, event);
        for (const leaseId of leaseIds) out.line(fateOf(leaseId, events));
        for (const line of outcomesOf(events)) out.line(line);
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
  const told = readableBody(ended) as { endReason?: string; reason?: string; refusal?: { kind?: string } } | null;
  const how = [told?.endReason ?? 'ended', told?.refusal?.kind, told?.reason]
    .filter((text) => (text ?? '') !== '')
    .join(', ');
  return granted === undefined
    ? `The request waited and was not granted: ${clean(how)}.`
    : `The request ${waited}was granted, and its lease has ended: ${clean(how)}.`;
}

/** What is known of each tracked write that was let in. */
function outcomesOf(events: readonly Event[]): string[] {
  const bodies = (kind: string) => events.filter((event) => event.kind === kind).map(readableBody);
  const admitted = bodies('writes_admitted').flatMap((body) => (body as { writes?: Told[] } | null)?.writes ?? []);
  const reported = bodies('writes_reported').flatMap((body) => (body as { writes?: Told[] } | null)?.writes ?? []);
  const settled = bodies('doubt_settled') as (Told | null)[];
  return admitted.map(({ admissionId, resource = '', action: verb = '' }) => {
    const finding = settled.find((one) => one?.admissionId === admissionId);
    const report = reported.find(
      (one) => one.admissionId === admissionId && one.result !== 'unknown' && !one.contradicts,
    );
    const known =
      finding != null
        ? `an operator found that it ${finding.happened === true ? 'happened' : 'did not happen'}`
        : (report?.result ?? 'nobody has said what became of it (writ in-doubt list --open)');
    return `The write ${verb} on ${clean(resource)} was let in: ${known}.`;
  });
}

/** Of a tracked write, as events tell it. */
interface Told {
  readonly admissionId?: string;
  readonly resource?: string;
  readonly action?: string;
  readonly result?: string;
  readonly contradicts?: boolean;
  readonly happened?: boolean;
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
    ...bodyFacts(event).map(([name, value]) => [`  ${name}`, value] as const),
  ]);
  out.line();
}

/** Parts of a body that say something by themselves; the rest is in the export. */
const TELLING = [
  'refusal',
  'refusals',
  'message',
  'endReason',
  'cause',
  'reason',
  'state',
  'purpose',
  'who',
  'why',
  'version',
  'endsAs',
  'target',
  'happened',
  'newVersion',
  'detail',
  'ended',
  'acceptsOverlap',
  'overlaps',
  'blockers',
  'denials',
  'patterns',
  'pattern',
  'scope',
  'deniesChecks',
  'thaws',
  'byTime',
  'use',
  'notOwned',
  'writes',
  'credentials',
  'boundTo',
  'subject',
  'changes',
];

function bodyFacts(event: Event): [string, string][] {
  const json = readableBody(event);
  if (typeof json !== 'object' || json === null) return [];
  const { freeze, ...rest } = json as Record<string, unknown>;
  const facts = { ...rest, ...frozenFacts(freeze) };
  return TELLING.flatMap((name) => {
    const value = facts[name];
    if (value === undefined || value === null || value === '') return [];
    const text = inWords(value);
    return text === '' ? [] : [[name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`), text]];
  });
}

/** A freeze stands for what it says. */
function frozenFacts(freeze: unknown): Record<string, unknown> {
  if (typeof freeze !== 'object' || freeze === null) return {};
  const { pattern, scope, deniesChecks, until, reason } = freeze as Record<string, unknown>;
  return { pattern, scope, deniesChecks, reason, thaws: typeof until === 'number' ? momentText(until) : null };
}

/** A list or an object as `name value` pairs, for people; the exact body is in --json and in an export. */
function inWords(value: unknown): string {
  if (Array.isArray(value)) return value.map(inWords).join('; ');
  if (typeof value !== 'object' || value === null) return String(value ?? '');
  return Object.entries(value)
    .map(([name, one]) => [name, momentIn(name, one) ?? inWords(one)] as const)
    .filter(([, text]) => text !== '' && text !== 'false')
    .map(([name, text]) => `${name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${text}`)
    .join(', ');
}

/** What a name says is a time of the database clock; null: it does not. */
function momentIn(name: string, value: unknown): string | null {
  return typeof value === 'number' && /(Until|Since|At)$/.test(name) ? momentText(value) : null;
}

/** The body with its free texts, as far as they have not been erased. */
function readableBody({ body, texts }: Event): unknown {
  const known = new Map(texts.map(({ digest, text }) => [Buffer.from(digest).toString('hex'), text]));
  try {
    return JSON.parse(body, (_name, value: unknown) => {
      const digest = digestIn(value);
      return digest === null ? value : (known.get(digest) ?? ERASED);
    });
  } catch {
    return null;
  }
}
