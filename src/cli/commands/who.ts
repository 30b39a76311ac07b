import type { Command } from 'commander';
import { protoJson } from '../../contract/proto-json.js';
import { matchPattern, parsePattern } from '../../domain/pattern.js';
import { ResolveResourceResponse } from '../../gen/writ/v1/conflict_map_service.js';
import { FindBlockersResponse, type RuleAbout } from '../../gen/writ/v1/lease_service.js';
import { type Run, Run as RunMessage, RunState } from '../../gen/writ/v1/run_service.js';
import {
  Access,
  type Blocker,
  type Lease,
  type LeaseEntry,
  Lease as LeaseMessage,
  Scope,
  Validation,
} from '../../gen/writ/v1/types.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { pages } from '../pages.js';
import { accessWord, covered, runStateWord, short, showFreezes, when } from '../show.js';

/** Of runs, by their id: what a lease without a purpose of its own is for. */
type Purposes = ReadonlyMap<string, string>;

/** A run in another state is granted nothing. */
const MAY_ACQUIRE: ReadonlySet<RunState> = new Set([RunState.RUN_STATE_ACTIVE, RunState.RUN_STATE_WAITING_FOR_INPUT]);

export function registerWho(program: Command, cli: Cli): void {
  const who = program
    .command('who')
    .argument('<resource>', 'a path or an alias')
    .description(
      'say who holds a resource, or what excludes it by a rule, who waits, what keeps it closed or frozen, and who may ask for it',
    );
  action(who, cli, async ({ out, args: [asked = ''], client }) => {
    const writ = await client('operator');
    const resolved = await writ.conflictMap.resolveResource({ resource: asked });
    const { resource } = resolved;
    const found = await writ.lease.findBlockers({ resource });
    const leases = await pages(
      (page) => writ.lease.listLeases({ resource, page }),
      (answer) => answer.leases,
    );
    const runs = await pages(
      (page) => writ.run.listRuns({ page }),
      (answer) => answer.runs,
    );
    const may = runs
      .filter(({ state }) => MAY_ACQUIRE.has(state))
      .map((run) => ({ run, actions: allowedActions(run, resource) }))
      .filter(({ actions }) => actions.length > 0);
    const machine = () => ({
      ...(protoJson(ResolveResourceResponse, resolved) as object),
      ...(protoJson(FindBlockersResponse, found) as object),
      leases: leases.map((lease) => protoJson(LeaseMessage, lease)),
      may: may.map(({ run, actions }) => ({ run: protoJson(RunMessage, run), actions })),
    });
    out.result(machine, () => {
      out.line(`${out.style(resource, 'bold')}${resource === asked ? '' : ` (alias: ${asked})`}`);
      out.line(
        resolved.kind === ''
          ? 'No kind of the conflict map matches it.'
          : `of kind ${resolved.kind}, actions: ${resolved.actions.join(', ') || 'none'}`,
      );
      if (resolved.validation === Validation.VALIDATION_LOCAL) out.line(LOCAL);
      if (resolved.validation === Validation.VALIDATION_VIEW) out.line(VIEW);
      showBlockers(out, found, new Map(runs.map((run) => [run.runId, run.purpose])));
      showReaders(out, leases, resource);
      out.line();
      if (may.length === 0) out.line('No live run that you may see may ask for it.');
      else showMay(out, may);
      showRules(out, found.rules);
    });
    return EXIT.ok;
  });
}

function showMay(out: Output, may: readonly { readonly run: Run; readonly actions: readonly string[] }[]): void {
  out.table(
    ['MAY ASK', 'STATE', 'PRINCIPAL', 'ACTIONS', 'PURPOSE'],
    may.map(({ run, actions }) => [
      run.runId,
      runStateWord(run.state),
      run.principal,
      actions.join(', '),
      short(run.purpose),
    ]),
  );
}

/** Holders, what early ends keep from other runs, then the queue. Runners see the runs of others by a name that tells nothing. */
function showBlockers(out: Output, { blockers, more, freezes }: FindBlockersResponse, purposes: Purposes): void {
  const delayed = blockers.filter((blocker) => blocker.lockDelayUntil !== undefined);
  const doubted = blockers.filter((blocker) => blocker.inDoubtSince !== undefined);
  const holders = blockers.filter(
    ({ waiting, lockDelayUntil, inDoubtSince }) =>
      !waiting && lockDelayUntil === undefined && inDoubtSince === undefined,
  );
  const waiters = blockers.filter((blocker) => blocker.waiting);
  if (holders.length === 0) out.line('\nNobody holds it, or anything that excludes it.');
  showTable(out, 'HOLDS', holders, purposes);
  showTable(out, 'UNDER LOCK DELAY', delayed, purposes);
  showTable(out, 'IN DOUBT', doubted, purposes);
  if (doubted.length > 0) out.line('Granted to nobody until it is known what became of a write: writ in-doubt list');
  showTable(out, 'WAITS FOR', waiters, purposes);
  if (more) out.line('There are more than are shown.');
  if (freezes.length === 0) return;
  out.line();
  showFreezes(out, freezes, 'FROZEN, AND GRANTED TO NOBODY');
}

function showTable(out: Output, heading: string, blockers: readonly Blocker[], purposes: Purposes): void {
  if (blockers.length === 0) return;
  out.line();
  out.table(
    [heading, 'ACCESS', 'BY RULE', 'UNTIL', 'RUN', 'LEASE', 'PURPOSE'],
    blockers.map((blocker) => [
      covered(blocker.resource, blocker.scope),
      accessWord(blocker.access),
      blocker.rule,
      when(blocker.expiresAt ?? blocker.lockDelayUntil),
      blocker.runId === '' ? 'another run' : blocker.runId,
      blocker.leaseId === '' ? blocker.blockerRef : blocker.leaseId,
      short(blocker.purpose || (purposes.get(blocker.runId) ?? '')),
    ]),
  );
}

/** Reads are recorded and stand in nobody's way. */
function showReaders(out: Output, leases: readonly Lease[], resource: string): void {
  const rows = leases.flatMap((lease) =>
    lease.entries
      .filter((entry) => entry.access === Access.ACCESS_READ && meets(entry, resource))
      .map((entry) => [covered(entry.resource, entry.scope), lease.runId, lease.leaseId, short(lease.purpose)]),
  );
  if (rows.length === 0) return;
  out.line();
  out.table(['READS', 'RUN', 'LEASE', 'PURPOSE'], rows);
}

function showRules(out: Output, rules: readonly RuleAbout[]): void {
  if (rules.length === 0) return;
  out.line();
  out.table(
    ['RULE', 'TIES IT TO', 'HOW'],
    rules.map(({ rule, resource, message }) => [rule, resource, message]),
  );
}

const LOCAL =
  'Its targets verify credentials by themselves: after an early end nobody else is granted it before the last one is dead.';

const VIEW =
  'Its targets decide by a view of the log: after an early end nobody else is granted it before the last older view is dead.';

/** At the resource, below it, or a subtree that it is in. */
function meets(entry: LeaseEntry, resource: string): boolean {
  if (entry.resource === resource || entry.resource.startsWith(`${resource}/`)) return true;
  return entry.scope === Scope.SCOPE_SUBTREE && resource.startsWith(`${entry.resource}/`);
}

/** What the run's contract allows on the resource. */
function allowedActions(run: Run, resource: string): string[] {
  const segments = resource.split('/');
  const matching = run.allowed.filter(({ pattern: text }) => {
    const parsed = parsePattern(text);
    return parsed.ok && matchPattern(parsed.pattern, segments) !== null;
  });
  return [...new Set(matching.flatMap(({ actions }) => actions))];
}
