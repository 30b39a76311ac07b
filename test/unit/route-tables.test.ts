import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../../src/platform/log.js';
import { RouteTables } from '../../src/services/route-tables.js';
import { eventually } from '../support/coordinator.js';
import { makeTestDirectory } from '../support/global-setup.js';

const route = (path: string) => ({
  method: 'PUT',
  path,
  writes: [{ resource: 'page/{name}', action: 'replace', change_class: 'shared_document' }],
});
const table = (path = '/pages/{name}') => ({ version: 1, routes: [route(path)] });

async function fileWith(content: object | string, name = 'routes.yaml'): Promise<string> {
  const file = join(await makeTestDirectory('routes'), name);
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

async function started(file: string | null): Promise<{ tables: RouteTables; logged: () => string }> {
  let text = '';
  const write = (line: string): void => {
    text += line;
  };
  const log = createLogger('info', { write });
  const tables = new RouteTables({ file, log, lookEveryMs: 10 });
  onTestFinished(() => tables.stop());
  await tables.start();
  return { tables, logged: () => text };
}

const pathsOf = (tables: RouteTables, name: string) => tables.of(name)?.table.routes.map(({ path }) => path);

describe('the routes file', () => {
  it('is not needed; then nobody has routes', async () => {
    const { tables } = await started(null);
    expect(tables.of('svc:pages')).toBeNull();
  });

  it('is one table for every target, in the default namespace', async () => {
    const { tables } = await started(
      await fileWith(`
version: 1
routes:
  - method: PUT
    path: /pages/{name}
    writes: [{ resource: "page/{name}", action: replace, change_class: shared_document }]
`),
    );
    expect(tables.of('svc:pages')).toMatchObject({ namespace: 'default' });
    expect(pathsOf(tables, 'svc:any')).toEqual(['/pages/{name}']);
  });

  it('or has the table of each target, there or in a file beside it, and none for others', async () => {
    const file = await fileWith({
      version: 1,
      targets: {
        'svc:pages': { table: table() },
        'svc:menus': { namespace: 'team-a', table: 'menus.yaml' },
      },
    });
    await writeFile(join(file, '..', 'menus.yaml'), JSON.stringify(table('/menus/{name}')));
    const { tables } = await started(file);
    expect(pathsOf(tables, 'svc:pages')).toEqual(['/pages/{name}']);
    expect(pathsOf(tables, 'svc:menus')).toEqual(['/menus/{name}']);
    expect(tables.of('svc:menus')?.namespace).toBe('team-a');
    for (const other of ['svc:other', 'toString', '__proto__', '']) expect(tables.of(other)).toBeNull();
  });

  it.each([
    ['no such file', null, /cannot be read/],
    ['no YAML', 'version: [1', /routes\.yaml: is not YAML/],
    ['a key twice', 'version: 1\nversion: 1\nroutes: []', /is not YAML.*unique/],
    ['a text', 'hello', /the document: must be an object/],
    ['a wrong table', { version: 1, routes: [{ ...route('/pages/{name}'), writes: [] }] }, /routes\[0\]\.writes/],
    [
      'fields of a message',
      { version: 1, routes: [{ ...route('/p'), fields: { name: 'page' } }] },
      /routes\[0\]\.fields/,
    ],
    ['another key', { version: 1, targets: {}, unrouted: 'deny' }, /unrouted/],
    [
      'a wrong table of a target',
      { version: 1, targets: { a: { table: { version: 1 } } } },
      /targets\.a\.table\.routes/,
    ],
    ['no table', { version: 1, targets: { a: {} } }, /targets\.a\.table/],
    [
      'a table that is not there',
      { version: 1, targets: { a: { table: 'nowhere.yaml' } } },
      /nowhere\.yaml: cannot be read/,
    ],
    ['too large', `version: 1 # ${'x'.repeat(4 << 20)}`, /larger than/],
  ])('is refused at the start, with file and field: %s', async (_, content, message) => {
    const file = content === null ? join(await makeTestDirectory('routes'), 'none.yaml') : await fileWith(content);
    await expect(started(file)).rejects.toThrow(message);
  });

  it('names all problems at once', async () => {
    const routes = [
      { ...route('/pages/{name}'), method: 'put' },
      { ...route('/menus/{name}'), path: 7 },
    ];
    const error = await started(await fileWith({ version: 1, routes })).catch((thrown: Error) => thrown);
    expect((error as Error).message.split('\n')).toHaveLength(2);
  });

  it('is read again when it changes, or a file that it names does', async () => {
    const file = await fileWith({ version: 1, targets: { a: { table: 'a.yaml' } } });
    const other = join(file, '..', 'a.yaml');
    await writeFile(other, JSON.stringify(table('/one/{name}')));
    const { tables } = await started(file);
    await writeFile(other, JSON.stringify(table('/second/{name}')));
    await eventually(
      () => pathsOf(tables, 'a'),
      (paths) => paths?.[0] === '/second/{name}',
    );
    await writeFile(file, JSON.stringify({ version: 1, targets: { b: { table: table('/third/{name}') } } }));
    await eventually(
      () => pathsOf(tables, 'b'),
      (paths) => paths?.[0] === '/third/{name}',
    );
    expect(tables.of('a')).toBeNull();
  });

  it('is found again behind a link that is turned, as Kubernetes does', async () => {
    const directory = await makeTestDirectory('routes');
    for (const version of ['v1', 'v2']) {
      await mkdir(join(directory, version));
      await writeFile(join(directory, version, 'routes.yaml'), JSON.stringify(table(`/${version}/{name}`)));
    }
    await symlink(join(directory, 'v1'), join(directory, 'current'));
    const { tables } = await started(join(directory, 'current', 'routes.yaml'));
    await symlink(join(directory, 'v2'), join(directory, 'next'));
    await rename(join(directory, 'next'), join(directory, 'current'));
    await eventually(
      () => pathsOf(tables, 'a'),
      (paths) => paths?.[0] === '/v2/{name}',
    );
  });

  it('stays as it was when the new one cannot be used, which is logged', async () => {
    const file = await fileWith(table());
    const { tables, logged } = await started(file);
    await writeFile(file, JSON.stringify({ version: 1, routes: [route('pages')] }));
    await eventually(logged, (text) => text.includes('the new routes file is not used'));
    expect(logged()).toContain('routes[0].path');
    expect(pathsOf(tables, 'a')).toEqual(['/pages/{name}']);
  });
});
