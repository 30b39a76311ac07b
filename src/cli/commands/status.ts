import type { Command } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import { protoJson } from '../../contract/proto-json.js';
import { OpenWrite } from '../../gen/writ/v1/lease_service.js';
import { Namespace } from '../../gen/writ/v1/namespace_service.js';
import { Run, RunState } from '../../gen/writ/v1/run_service.js';
import { Freeze } from '../../gen/writ/v1/types.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { pages } from '../pages.js';
import { counted, showFreezes, showRuns, when } from '../show.js';
import { durationJson } from '../time-json.js';
import { unlessForbidden } from '../unless-forbidden.js';
import { showWrites } from './in-doubt.js';

/** States in which a run needs somebody. */
const ATTENTION = [RunState.RUN_STATE_WAITING_FOR_INPUT, RunState.RUN_STATE_BLOCKED, RunState.RUN_STATE_STOPPING];

export function registerStatus(program: Command, cli: Cli): void {
  const status = program.command('status').description('say whether the coordinator answers, and what is going on');
  action(status, cli, async ({ out, options, namespace, client }) => {
    const writ = await client('operator');
    const began = performance.now();
    const chosen = await namespacesOf(writ, namespace);
    const answeredInMs = Math.round(performance.now() - began);
    const attention = await pages(
      (page) => writ.run.listRuns({ namespace: namespace === '' ? 'default' : namespace, states: ATTENTION, page }),
      (answer) => answer.runs,
    );
    const freezes = await pages(
      (page) => writ.lease.listFreezes({ namespace: namespace === '' ? 'default' : namespace, page }),
      (answer) => answer.freezes,
    );
    const inDoubt = await unlessForbidden(
      pages(
        (page) => writ.lease.listInDoubt({ namespace: namespace === '' ? 'default' : namespace, page }),
        (answer) => answer.writes,
      ),
      [],
    );
    const endpoint = options.endpoint ?? cli.config.endpoint;
    out.result(
      () => ({
        endpoint,
        answeredIn: durationJson(answeredInMs),
        namespaces: chosen.map((one) => protoJson(Namespace, one)),
        attention: attention.map((run) => protoJson(Run, run)),
        freezes: freezes.map((freeze) => protoJson(Freeze, freeze)),
        inDoubt: inDoubt.map((write) => protoJson(OpenWrite, write)),
      }),
      () => {
        out.line(`${out.style('up', 'green')}: ${endpoint} answered in ${answeredInMs} ms`);
        out.line();
        out.table(
          ['NAMESPACE', 'LOG REVISION', 'MAP VERSION', 'LIVE LEASES', 'WAITING', 'RUNS', 'SINCE'],
          chosen.map(row),
        );
        if (inDoubt.length > 0) {
          out.line();
          const held = 'nobody is granted their resources before it is known what became of them.';
          out.line(out.style(`${counted(inDoubt.length, 'write')} in doubt: ${held}`, 'red'));
          showWrites(out, inDoubt);
        }
        if (freezes.length > 0) {
          out.line();
          showFreezes(out, freezes, 'FROZEN, AND GRANTED TO NOBODY');
        }
        if (attention.length === 0) return;
        out.line();
        out.line(out.style('These runs need somebody:', 'yellow'));
        showRuns(out, attention);
      },
    );
    return EXIT.ok;
  });
}

/** One that is named is asked for by itself: the list of all needs all databases. */
async function namespacesOf(writ: WritClient, namespace: string): Promise<readonly Namespace[]> {
  if (namespace === '')
    return pages(
      (page) => writ.namespaces.listNamespaces({ page }),
      (answer) => answer.namespaces,
    );
  const { namespace: one } = await writ.namespaces.getNamespace({ name: namespace });
  return one === undefined ? [] : [one];
}

function row(one: Namespace): string[] {
  const map = one.conflictMapVersion === 0n ? 'none yet' : one.conflictMapVersion.toString();
  return [
    one.name,
    one.logRevision.toString(),
    map,
    String(one.liveLeases),
    String(one.waitingRequests),
    String(one.liveRuns),
    when(one.createdAt),
  ];
}
