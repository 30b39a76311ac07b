import { readFileSync } from 'node:fs';
import { createConfig, lint } from '@redocly/openapi-core';
import { describe, expect, it } from 'vitest';
import { METHOD_ROUTES, rolesForRoute } from '../../src/auth/roles.js';
import { openApiDocument } from '../../src/transports/http/api/document.js';
import { readStrictJson } from '../../src/transports/http/api/strict-json.js';

const document = openApiDocument();
const WRITTEN = new URL('../../docs/openapi.json', import.meta.url);

type Operation = Record<string, unknown> & { parameters?: { name: string; in: string; required: boolean }[] };

interface Answered {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, { readonly $ref?: string }>>;
}

const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    route: `${method.toUpperCase()} ${path}`,
    operation: operation as Operation,
  })),
);

describe('the OpenAPI document', () => {
  it('is written down as it is served (npm run gen)', () => {
    expect(JSON.parse(readFileSync(WRITTEN, 'utf8'))).toEqual(JSON.parse(JSON.stringify(document)));
  });

  it('says nothing that a linter would object to', async () => {
    const config = await createConfig({ extends: ['recommended-strict'] });
    const problems = await lint({ ref: WRITTEN.pathname, config });
    const told = problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`);
    expect(told).toEqual([]);
  });

  it('would notice what a linter objects to', async () => {
    const config = await createConfig({ extends: ['recommended-strict'] });
    const ref = new URL('../data/openapi-without-answers.json', import.meta.url).pathname;
    expect((await lint({ ref, config })).map(({ ruleId }) => ruleId)).toContain('operation-4xx-response');
  });

  it('has every route of the API, with the roles that may call it', () => {
    expect(operations.map(({ route }) => route).sort()).toEqual([...METHOD_ROUTES].sort());
    for (const { route, operation } of operations)
      expect(operation['x-writ-roles'], route).toBe(rolesForRoute(route as never)?.join(', '));
  });

  it('says what each operation and each member is for', () => {
    for (const { route, operation } of operations) {
      expect(operation.summary, route).not.toBe('');
      expect(operation.description, route).not.toBe('');
      for (const { name, ...parameter } of operation.parameters ?? [])
        expect(parameter, `${route} ${name}`).toHaveProperty('schema');
    }
    for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
      const { properties = {}, description } = schema as { properties?: Record<string, object>; description?: string };
      expect(description, name).toMatch(/\w/);
      for (const [member, value] of Object.entries(properties))
        if (!name.endsWith('Response')) expect(Object.keys(value), `${name}.${member}`).toContain('description');
    }
  });

  it('tells of what can be wrong with a body where one is read, and only there', () => {
    for (const { route, operation } of operations) {
      const told = Object.keys(operation.responses as object).filter((status) => ['413', '415'].includes(status));
      expect([route, told]).toEqual([route, operation.requestBody === undefined ? [] : ['413', '415']]);
    }
  });

  it('tells of the headers that a caller acts on', () => {
    const { responses = {}, headers = {} } = document.components ?? {};
    for (const { route, operation } of operations) {
      for (const [status, answer] of Object.entries(operation.responses as Record<string, Answered>)) {
        const told = answer.$ref === undefined ? answer : (responses[answer.$ref.split('/').at(-1) ?? ''] as Answered);
        const names = Object.keys(told.headers ?? {});
        expect(names, `${route} ${status}`).toContain('X-Request-Id');
        if (status === '401') expect(names, route).toContain('WWW-Authenticate');
        if (['429', '503'].includes(status)) expect(names, `${route} ${status}`).toContain('Retry-After');
        if (status === '415') expect(names, route).toEqual(expect.arrayContaining(['Accept', 'Accept-Encoding']));
        for (const header of Object.values(told.headers ?? {}))
          if (header.$ref !== undefined) expect(headers).toHaveProperty(header.$ref.split('/').at(-1) ?? '');
      }
    }
  });

  it('demands a key of every operation that creates, and a version of every change of the map', () => {
    const demanding = (header: string): string[] =>
      operations
        .filter(({ operation }) => operation.parameters?.some(({ name, required }) => name === header && required))
        .map(({ route }) => route)
        .sort();
    expect(demanding('Idempotency-Key')).toEqual([
      'POST /v1/leases',
      'POST /v1/leases/take-over',
      'POST /v1/leases/{leaseId}/amend',
      'POST /v1/runs',
      'POST /v1/runs/stop',
      'POST /v1/runs/{runId}/state',
    ]);
    expect(demanding('If-Match')).toEqual(['POST /v1/conflict-map/rollback', 'PUT /v1/conflict-map']);
  });
});

describe('strict JSON', () => {
  const read = (text: string) => readStrictJson(text, { maxFields: 10, setting: 'A_SETTING' });

  it.each([
    '{}',
    '[]',
    '"a"',
    ' { "a" : [ { } , { } ] } ',
    '{"a":{"a":1},"b":{"a":2}}',
    '{"\\"":1,"\\\\":2}',
    '{"a":"{\\"a\\":1,\\"a\\":2}"}',
    '[{"a":1},{"a":1}]',
    '{"":0}',
  ])('reads %s', (text) => {
    expect(read(text)).toEqual(JSON.parse(text));
  });

  it.each([
    ['{"a":1,"a":1}', 'a: is given twice'],
    ['{"a":[{"b":1},{"c":1,"c":2}]}', 'a[1].c: is given twice'],
    ['[0,{"a":{"":1,"":2}}]', '[1].a.: is given twice'],
    ['{"a":{"\\u005f_proto__":1}}', 'a.__proto__: must not be __proto__'],
    ['[1,2,3,4,5,6,7,8,9,10,11]', 'at most 10 fields'],
    ['', 'body: must be JSON'],
    ['{"a":1', 'body: must be JSON'],
  ])('refuses %s', (text, message) => {
    expect(() => read(text)).toThrow(message);
  });
});
