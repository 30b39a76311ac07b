import type { Command } from 'commander';
import { protoJson } from '../../contract/proto-json.js';
import { CreateNamespaceResponse, ListNamespacesResponse } from '../../gen/writ/v1/namespace_service.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { pages } from '../pages.js';
import { when } from '../show.js';

export function registerNamespace(program: Command, cli: Cli): void {
  const namespace = program.command('namespace').description('namespaces: conflicts never cross them');

  const create = namespace
    .command('create')
    .argument('<name>', '1 to 64 of a-z, 0-9 and -')
    .option('--database <name>', 'that it is to live in, for good; default: main')
    .description('create a namespace; idempotent');
  action<{ database?: string }>(create, cli, async ({ out, args: [name = ''], options, client }) => {
    const { database = '' } = options;
    const answer = await (await client('admin')).namespaces.createNamespace({ name, database });
    out.result(
      () => protoJson(CreateNamespaceResponse, answer),
      () => out.line(answer.created ? `Created ${name}.` : `${name} was there already.`),
    );
    return EXIT.ok;
  });

  const list = namespace.command('list').description('list namespaces');
  action(list, cli, async ({ out, client }) => {
    const writ = await client('admin');
    const namespaces = await pages(
      (page) => writ.namespaces.listNamespaces({ page }),
      (answer) => answer.namespaces,
    );
    out.result(
      () => protoJson(ListNamespacesResponse, { namespaces, nextPageToken: '' }),
      () => {
        out.table(
          ['NAMESPACE', 'DATABASE', 'SINCE'],
          namespaces.map((one) => [one.name, one.database, when(one.createdAt)]),
        );
      },
    );
    return EXIT.ok;
  });
}
