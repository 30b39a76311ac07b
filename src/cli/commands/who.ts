import type { Command } from 'commander';
import { matchPattern, parsePattern } from '../../domain/pattern.js';
import { ResolveResourceResponse } from '../../gen/writ/v1/conflict_map_service.js';
import { type Run, Run as RunMessage } from '../../gen/writ/v1/run_service.js';
import {
  Access,
  type Lease,
  type LeaseEntry,
  Lease as LeaseMessage,
  LeaseState,
  Scope,
  Validation,
} from '../../gen/writ/v1/types.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { pages } from '../pages.js';
import { accessWord, covered, endReasonWord, leaseStateWord, runStateWord, short, when, within } from '../show.js';

export function registerWho(program: Command, cli: Cli): void {
  const who = program
    .command('who')
    .argument('<resource>', 'a path or an alias')
    .description('say who holds a resource, who waits for it, what keeps it closed, and who may ask for it');
  action(who, cli, async ({ out, args: [asked = ''], client }) => {
    const writ = await client('operator');
    const resolved = await writ.conflictMap.resolveResource({ resource: asked });
    const { resource } = resolved;
    const leases = await pages(
      (page) => writ.lease.listLeases({ resource, lockDelayed: true, page }),
      (answer) => answer.leases,
    );
    const runs = await pages(
      (page) => writ.run.listRuns({ page }),
      (answer) => answer.runs,
    );
    const may = runs
      .map((run) => ({ run, actions: allowedActions(run, resource) }))
      .filter(({ actions }) => actions.length > 0);
    const machine = {
      resource: ResolveResourceResponse.toJSON(resolved),
      leases: leases.map((lease) => LeaseMessage.toJSON(lease)),
      may: may.map(({ run, actions }) => ({ run: RunMessage.toJSON(run), actions })),
    };
    out.result(machine, () => {
      out.line(`${out.style(resource, 'bold')}${resource === asked ? '' : ` (alias: ${asked})`}`);
      out.line(
        resolved.kind === ''
          ? 'No kind of the conflict map matches it.'
          : `of kind ${resolved.kind}, actions: ${resolved.actions.join(', ') || 'none'}`,
      );
      if (resolved.validation === Validation.VALIDATION_LOCAL) out.line(LOCAL);
      out.line();
      showHolders(out, leases, resource, LeaseState.LEASE_STATE_ACTIVE, 'Nobody holds it.');
      showDelayed(out, leases, resource);
      showHolders(out, leases, resource, LeaseState.LEASE_STATE_WAITING, '');
      out.line();
      if (may.length === 0) return out.line('No live run may ask for it.');
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
    });
    return EXIT.ok;
  });
}

function showHolders(out: Output, leases: readonly Lease[], resource: string, state: LeaseState, none: string): void {
  const rows = leases
    .filter((lease) => lease.state === state)
    .flatMap((lease) => lease.entries.filter((entry) => meets(entry, resource)).map((entry) => ({ lease, entry })));
  if (rows.length === 0) {
    if (none !== '') out.line(none);
    return;
  }
  const word = leaseStateWord(state) === 'active' ? 'HOLDS' : 'WAITS FOR';
  out.table(
    [word, 'ACCESS', 'ACTIONS', 'EXPIRES', 'RUN', 'LEASE', 'PURPOSE'],
    rows.map(({ lease, entry }) => [
      covered(entry.resource, entry.scope),
      accessWord(entry.access),
      entry.actions.join(', '),
      within(lease.expiresIn),
      lease.runId,
      lease.leaseId,
      short(lease.purpose),
    ]),
  );
}

const LOCAL =
  'Its targets verify credentials by themselves: after an early end nobody else is granted it before the last one is dead.';

/** What early ends keep from other runs. */
function showDelayed(out: Output, leases: readonly Lease[], resource: string): void {
  const rows = leases
    .filter((lease) => lease.state === LeaseState.LEASE_STATE_ENDED)
    .flatMap((lease) => lease.entries.filter((entry) => isDelayed(entry, resource)).map((entry) => ({ lease, entry })));
  if (rows.length === 0) return;
  out.table(
    ['UNDER LOCK DELAY', 'ACCESS', 'UNTIL', 'RUN', 'LEASE', 'ENDED'],
    rows.map(({ lease, entry }) => [
      covered(entry.resource, entry.scope),
      accessWord(entry.access),
      when(lease.lockDelayUntil),
      lease.runId,
      lease.leaseId,
      endReasonWord(lease.endReason),
    ]),
  );
}

function isDelayed(entry: LeaseEntry, resource: string): boolean {
  const locks = entry.access !== Access.ACCESS_READ && entry.observedRefusal === undefined;
  return locks && entry.validation === Validation.VALIDATION_LOCAL && meets(entry, resource);
}

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
