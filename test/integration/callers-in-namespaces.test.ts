import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Role } from '../../src/auth/principal.js';
import type { CallContext } from '../../src/services/api.js';
import { as, startReplica, type TestReplica } from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

// Which namespaces a caller is shown: all, or those in which it has a role, also before they are made.

let database: TestDatabase;
let replica: TestReplica;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await startReplica({ url: database.url });
  for (const name of ['team-a', 'team-b', 'team-c']) await replica.api.createNamespace(as('admin'), { name });
});

afterAll(async () => {
  await replica?.stop();
  await database?.drop();
});

function rolesIn(places: Readonly<Record<string, readonly Role[]>>): CallContext {
  const namespaceRoles = new Map(Object.entries(places).map(([name, roles]) => [name, new Set(roles)]));
  return { ...as('runner'), principal: { name: 'somebody', roles: new Set(), namespaceRoles } };
}

/** All pages, of this size. */
async function shown(context: CallContext, size: number): Promise<string[]> {
  const names: string[] = [];
  for (let token: string | null = ''; token !== null; ) {
    const page: { items: readonly { name: string }[]; nextToken: string } = await replica.api.listNamespaces(context, {
      page: { size, token },
    });
    expect(page.items.length).toBeLessThanOrEqual(size);
    names.push(...page.items.map(({ name }) => name));
    token = page.nextToken === '' ? null : page.nextToken;
  }
  return names;
}

it.each([1, 2, 100])('whoever has a role everywhere is shown all, %i at a time', async (size) => {
  expect(await shown(as('auditor'), size)).toEqual(['default', 'team-a', 'team-b', 'team-c']);
});

it.each([1, 2, 100])('whoever has roles in some is shown those alone, %i at a time', async (size) => {
  const some = { 'team-c': ['runner'], 'team-a': ['auditor'], 'not-made-yet': ['admin'] } as const;
  expect(await shown(rolesIn(some), size)).toEqual(['team-a', 'team-c']);
});

it('whoever has a role in one that is not made yet is shown nothing', async () => {
  expect(await shown(rolesIn({ 'not-made-yet': ['admin'] }), 10)).toEqual([]);
});
