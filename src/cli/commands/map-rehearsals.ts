import type { Command } from 'commander';
import { protoJson } from '../../contract/proto-json.js';
import { ListRehearsalsResponse, type Rehearsal } from '../../gen/writ/v1/conflict_map_service.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { pages } from '../pages.js';
import { when } from '../show.js';

/** `map rehearsals`: which kinds were rehearsed, which demand it, and whether the result counts. */
export function registerRehearsals(map: Command, cli: Cli): void {
  const list = map
    .command('rehearsals')
    .description('list the last rehearsal of each kind, and the kinds that demand one');
  action(list, cli, async ({ out, client }) => {
    const writ = await client('admin');
    const rehearsals = await pages(
      (page) => writ.conflictMap.listRehearsals({ page }),
      (answer) => answer.rehearsals,
    );
    out.result(
      () => protoJson(ListRehearsalsResponse, { rehearsals, nextPageToken: '' }),
      () => {
        if (rehearsals.length === 0) out.line('No kind was rehearsed, and none demands it.');
        out.table(
          ['KIND', 'DEMANDED', 'COUNTS', 'TARGET', 'RECORDED', 'UNTIL', 'BY'],
          rehearsals.map((one) => [
            one.kind,
            one.required ? 'yes' : 'no',
            one.counts
              ? { text: 'yes', style: 'green' as const }
              : { text: `no: ${one.whyNot}`, style: 'yellow' as const },
            one.targetName,
            when(one.recordedAt),
            when(one.validUntil),
            one.recordedBy,
          ]),
        );
        for (const one of rehearsals) if (one.openUntil !== undefined) out.line(underway(one));
      },
    );
    return EXIT.ok;
  });
}

function underway({ kind, openUntil }: Rehearsal): string {
  return `${kind} is being rehearsed: the suite's runs may have it until ${when(openUntil)}.`;
}
