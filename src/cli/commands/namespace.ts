import type { Command } from 'commander';
import { CreateNamespaceResponse, ListNamespacesResponse } from '../../gen/writ/v1/namespace_service.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { pages } from '../pages.js';
import { protoJson } from '../proto-json.js';
import { when } from '../show.js';

export function registerNamespace(program: Command, cli: Cli): void {
  const namespace = program.command('namespace').description('namespaces: conflicts never cross them');

  const create = namespace
    .command('create')
    .argument('<name>', '1 to 64 of a-z, 0-9 and -')
    .description('create a namespace; idempotent');
  action(create, cli, async ({ out, args: [name = ''], client }) => {
    const answer = await (await client('admin')).namespaces.createNamespace({ name });
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
          ['NAMESPACE', 'SINCE'],
          namespaces.map((one) => [one.name, when(one.createdAt)]),
        );
      },
    );
    return EXIT.ok;
  });
}
