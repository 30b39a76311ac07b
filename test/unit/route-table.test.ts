import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHANGE_CLASSES as MAP_CLASSES } from '../../src/domain/change-class.js';
import { parseResource } from '../../src/domain/resource.js';
import {
  CHANGE_CLASSES,
  changeRule,
  matchRoute,
  parseRouteTable,
  ResourcePattern,
  type RouteMatch,
  type RouteTable,
  RouteTableError,
} from '../../src/route-table/index.js';
import { lengthFlaw, segmentFlaw } from '../../src/route-table/segment.js';

const promote = { resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer' };

function table(routes: readonly object[], more: object = {}): RouteTable {
  return parseRouteTable({ version: 1, routes, ...more });
}

/** What is wrong with a document, as `path: message`. */
function problemsOf(document: unknown): string[] {
  try {
    parseRouteTable(document);
  } catch (error) {
    if (error instanceof RouteTableError) return error.problems.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
  return [];
}

/** The resources of a match, or its kind. */
function told(match: RouteMatch): string {
  return match.kind === 'writes' ? match.writes.map(({ resource }) => resource).join(' ') : match.kind;
}

describe('the change classes', () => {
  it('are those of the conflict map, each with its rule', () => {
    expect([...CHANGE_CLASSES]).toEqual([...MAP_CLASSES]);
    expect(CHANGE_CLASSES.map((one) => [changeRule(one).onConflict, changeRule(one).retryable])).toEqual([
      ['reread_retry_if_free', true],
      ['reread_recompute_retry', true],
      ['stop_show_both', false],
      ['stop_ask_review', false],
      ['stop_unless_leased', false],
    ]);
  });
});

describe('a route table', () => {
  it('says which writes a request makes, with their class and resolver', () => {
    const routes = table([
      {
        host: 'releases.example.com',
        method: 'POST',
        path: '/releases/{env}/promote',
        writes: [{ ...promote, resolver: 'release-owner' }],
      },
      {
        method: ['PUT', 'PATCH'],
        path: '/docs/{space}/{page...}',
        writes: [
          { resource: 'wiki/{space}/{page...}', action: 'edit', change_class: 'derived' },
          { resource: 'index/{space}', action: 'update', change_class: 'derived' },
        ],
      },
      { method: ['GET', 'HEAD'], path: '/releases/{env...}', reads: true },
      { method: 'POST', path: '/webhooks/{name}', unprotected: 'no agent can reach it: signed by the sender' },
    ]);
    expect(
      matchRoute(routes, {
        host: 'Releases.Example.com:8443',
        method: 'POST',
        path: '/releases/prod-eu/promote?dry=1',
      }),
    ).toMatchObject({
      kind: 'writes',
      writes: [
        { resource: 'release/prod-eu', action: 'promote', changeClass: 'shared_pointer', resolver: 'release-owner' },
      ],
    });
    expect(
      told(matchRoute(routes, { host: 'other.example.com', method: 'POST', path: '/releases/prod-eu/promote' })),
    ).toBe('unrouted');
    expect(matchRoute(routes, { host: 'x', method: 'PATCH', path: '/docs/ops/a/b%20c/%C3%A9' })).toMatchObject({
      writes: [{ resource: 'wiki/ops/a/b c/é', resolver: 'agent' }, { resource: 'index/ops' }],
    });
    expect(told(matchRoute(routes, { host: 'x', method: 'GET', path: '/releases/prod-eu' }))).toBe('reads');
    expect(told(matchRoute(routes, { host: 'x', method: 'GET', path: '/releases' }))).toBe('unrouted');
    expect(told(matchRoute(routes, { host: 'x', method: 'POST', path: '/webhooks/ci' }))).toBe('unprotected');
    expect(told(matchRoute(routes, { host: 'x', method: 'DELETE', path: '/webhooks/ci' }))).toBe('unrouted');
  });

  it('lets reads without a route through only when it says so, and writes never', () => {
    const routes = [{ method: 'POST', path: '/a/{env}', writes: [promote] }];
    const reading = table(routes, { unrouted: 'allow_reads' });
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      expect(matchRoute(table(routes), { method, path: '/b' }).kind).toBe('unrouted');
      expect(matchRoute(reading, { method, path: '/b' })).toEqual({ kind: 'reads', route: null });
      expect(matchRoute(reading, { method, path: '/b/..' }).kind).toBe('malformed');
    }
    for (const method of ['POST', 'get', 'PROPFIND', 'TRACE', ''])
      expect(matchRoute(reading, { method, path: '/b' }).kind).toBe('unrouted');
  });

  it('takes a host only in the form that it compares', () => {
    const routes = table([
      { host: 'a.example', method: 'POST', path: '/x', writes: [{ ...promote, resource: 'a' }] },
      { method: 'POST', path: '/x', unprotected: 'of no interest' },
    ]);
    expect(told(matchRoute(routes, { host: 'A.EXAMPLE', method: 'POST', path: '/x' }))).toBe('a');
    expect(told(matchRoute(routes, { host: 'b.example', method: 'POST', path: '/x' }))).toBe('unprotected');
    // One of these names the first host in another way: taken for another host, it would go by the other route.
    for (const host of [
      'a.example.',
      'a.example:x',
      'a.example:80:80',
      'user@a.example',
      'a.example\u00a0',
      '',
      undefined,
      'а.example',
    ])
      expect(told(matchRoute(routes, { host, method: 'POST', path: '/x' })), String(host)).toBe('malformed');
  });

  it('takes resources from fields of the request where the route says so', () => {
    const routes = table([
      {
        method: 'POST',
        path: '/release.v1.Releases/Promote',
        fields: { env: 'target.env', 'doc...': 'document' },
        writes: [promote, { resource: 'wiki/{doc...}', action: 'edit', change_class: 'derived' }],
      },
    ]);
    const ask = (fields: Record<string, string> | null) =>
      matchRoute(routes, {
        method: 'POST',
        path: '/release.v1.Releases/Promote',
        ...(fields === null ? {} : { field: (name: string) => fields[name] }),
      });
    expect(told(ask({ 'target.env': 'prod-eu', document: 'a/b' }))).toBe('release/prod-eu wiki/a/b');
    expect(told(ask(null))).toBe('malformed');
    for (const fields of [
      {},
      { 'target.env': 'a/b', document: 'a' },
      { 'target.env': '', document: 'a' },
      { 'target.env': 'x', document: 'a//b' },
      { 'target.env': '..', document: 'a' },
    ])
      expect(told(ask(fields as Record<string, string>)), JSON.stringify(fields)).toBe('malformed');
  });
});

describe('a route table that is wrong', () => {
  it('is told all of it at once, each by its path', () => {
    const document = {
      version: 1,
      unrouted: 'allow',
      routes: [
        { method: 'post', path: '/a', reads: true },
        { method: ['GET', 'GET '], path: '/b', reads: true, extra: 1 },
        { path: '/c', writes: [{ resource: 'a' }] },
        { method: 5, path: '/d', reads: false },
        { host: 'Example.com', method: 'GET', path: '', reads: true },
        { method: 'GET', path: '/f', unprotected: '' },
      ],
    };
    expect(problemsOf(document).map((problem) => problem.split(':')[0])).toEqual([
      'routes[0].method',
      'routes[1].method[1]',
      'routes[1].extra',
      'routes[2].method',
      'routes[2].writes[0].action',
      'routes[2].writes[0].change_class',
      'routes[3].method',
      'routes[3].reads',
      'routes[4].host',
      'routes[4].path',
      'routes[5].unprotected',
      'unrouted',
    ]);
  });

  it.each<[string, object, RegExp]>([
    [
      'two kinds',
      { reads: true, writes: [promote] },
      /^routes\[0\]: give exactly one of writes, reads and unprotected/,
    ],
    ['no kind', {}, /^routes\[0\]: give exactly one/],
    ['no reason', { unprotected: ' ' }, /^routes\[0\].unprotected: give the reason/],
    [
      'no class',
      { writes: [{ resource: 'a', action: 'b' }] },
      /^routes\[0\].writes\[0\].change_class: is missing: one of independent, derived/,
    ],
    ['a class there is not', { writes: [{ ...promote, change_class: 'routine' }] }, /change_class: must be one of/],
    [
      'a capture that the path has not',
      { writes: [{ ...promote, resource: 'release/{region}' }] },
      /^routes\[0\].writes\[0\].resource: the route captures no \{region\}/,
    ],
    [
      'a rest as one segment',
      { path: '/a/{env...}', writes: [promote] },
      /resource: the route captures \{env\.\.\.\}; write it so here too/,
    ],
    [
      'one segment as a rest',
      { writes: [{ ...promote, resource: 'release/{env...}' }] },
      /the route captures \{env\}; write it so/,
    ],
    [
      'a resource that is none',
      { writes: [{ ...promote, resource: '/release/{env}' }] },
      /resource: segment 1: it is empty/,
    ],
    ['a part of a segment', { writes: [{ ...promote, resource: 'release/x-{env}' }] }, /a capture is a whole segment/],
    ['no writes', { writes: [] }, /writes: must be 1 to 32/],
    [
      '33 writes',
      { writes: Array.from({ length: 33 }, (_, n) => ({ ...promote, resource: `a/${n}` })) },
      /writes: must be 1 to 32/,
    ],
    [
      'a write twice',
      { writes: [promote, promote] },
      /^routes\[0\].writes\[1\]: promote of release\/\{env\} is there twice/,
    ],
    ['an action that is none', { writes: [{ ...promote, action: 'pro mote' }] }, /action: must be 1 to 128/],
    [
      'an escape',
      { path: '/a%2f/{env}', writes: [promote] },
      /^routes\[0\].path: "a%2f": write the characters themselves/,
    ],
    ['a query', { path: '/a?b/{env}', writes: [promote] }, /no escapes and no query/],
    ['no slash', { path: 'a/{env}', writes: [promote] }, /path: must begin with "\/"/],
    ['an empty segment', { path: '/a//{env}', writes: [promote] }, /path: segment 2: it is empty/],
    ['a slash at the end', { path: '/{env}/', writes: [promote] }, /path: segment 2: it is empty/],
    ['a dot segment', { path: '/../{env}', writes: [promote] }, /path: segment 1: it is "\." or "\.\."/],
    ['a rest in the middle', { path: '/{env...}/b', reads: true }, /path: \{env\.\.\.\} must be the last segment/],
    ['a name twice', { path: '/{env}/{env}', reads: true }, /path: \{env\} is there twice/],
    ['a capture without a name', { path: '/{}', reads: true }, /path: segment 1: "\{\}": a capture's name/],
    ['65 segments', { path: '/a'.repeat(65), reads: true }, /path: has more than 64 segments/],
    ['a method twice', { method: ['GET', 'GET'], path: '/a', reads: true }, /method: names a method twice/],
    [
      'a field for a name of the path',
      { fields: { env: 'env' }, writes: [promote] },
      /^routes\[0\].fields.env: is captured already/,
    ],
    ['a field that is none', { fields: { a: 'b..c' }, writes: [promote] }, /^routes\[0\].fields.a: must be a field/],
    [
      'a capture of fields that is none',
      { fields: { 'a b': 'b' }, writes: [promote] },
      /^routes\[0\].fields\["a b"\]:/,
    ],
    ['fields and no writes', { fields: { a: 'b' }, reads: true }, /fields: are for the resources of writes/],
    [
      'unreachable and no writes',
      { reads: true, when_unreachable: 'deny' },
      /when_unreachable: says what happens to writes/,
    ],
  ])('%s', (_name, route, expected) => {
    const problems = problemsOf({ version: 1, routes: [{ method: 'POST', path: '/a/{env}', ...route }] });
    expect(
      problems.filter((problem) => expected.test(problem)),
      problems.join('\n'),
    ).toHaveLength(1);
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['a text', 'routes'],
    ['a list', []],
    ['another version', { version: 2, routes: [{ method: 'GET', path: '/', reads: true }] }],
    ['no routes', { version: 1, routes: [] }],
    ['a key too many', { version: 1, routes: [{ method: 'GET', path: '/', reads: true }], rules: [] }],
  ])('%s is no table', (_name, document) => {
    expect(problemsOf(document)).not.toEqual([]);
  });

  it('two routes that are equally specific are told, whatever their captures are called', () => {
    const routes = [
      { method: ['GET', 'POST'], path: '/a/{x}/c', reads: true },
      { method: 'POST', path: '/a/{y}/c', reads: true },
      { host: 'h', method: 'POST', path: '/a/{y}/c', reads: true },
      { method: 'POST', path: '/a/{y...}', reads: true },
      { method: 'POST', path: '/a/{z...}', reads: true },
    ];
    expect(problemsOf({ version: 1, routes })).toEqual([
      'routes[1].path: POST /a/{y}/c is as specific as routes[0] (/a/{x}/c): neither would win',
      'routes[4].path: POST /a/{z...} is as specific as routes[3] (/a/{y...}): neither would win',
    ]);
  });

  it('tells at most 100 problems', () => {
    const routes = Array.from({ length: 500 }, () => ({ method: 'GET', path: 'a', reads: true }));
    expect(problemsOf({ version: 1, routes })).toHaveLength(100);
  });
});

describe('a path', () => {
  const routes = table([
    { method: 'POST', path: '/r/{name}', writes: [{ ...promote, resource: 'r/{name}' }] },
    { method: 'POST', path: '/all/{rest...}', writes: [{ ...promote, resource: '{rest...}' }] },
    { method: 'POST', path: '/', writes: [{ ...promote, resource: 'root' }] },
  ]);
  const post = (path: string) => matchRoute(routes, { method: 'POST', path });

  it.each([
    ['no slash at the beginning', 'r/a'],
    ['a whole URL', 'http://example.com/r/a'],
    ['nothing', ''],
    ['a query alone', '?a=b'],
    ['an empty segment', '/r//a'],
    ['a slash at the end', '/r/a/'],
    ['two slashes at the beginning', '//r/a'],
    ['a dot segment', '/r/.'],
    ['a dot segment up', '/r/../r/a'],
    ['an escaped dot segment', '/r/%2e'],
    ['an escaped dot segment up', '/r/%2E%2e/r/a'],
    ['one dot escaped', '/r/.%2e'],
    ['an escaped slash', '/r/a%2Fb'],
    ['an escaped backslash', '/r/a%5cb'],
    ['a backslash', '/r\\a'],
    ['an overlong slash', '/r/a%c0%afb'],
    ['an overlong dot', '/r/%c0%ae%c0%ae'],
    ['a surrogate in UTF-8', '/r/%ed%a0%80'],
    ['a byte that begins nothing', '/r/%ff'],
    ['half a character', '/r/%c3'],
    ['Latin-1 that is not escaped', '/r/\u00e9'],
    ['another alphabet that is not escaped', '/r/\u0430'],
    ['an escape without digits', '/r/%zz'],
    ['an escape that ends early', '/r/a%2'],
    ['a percent sign alone', '/r/%'],
    ['NUL', '/r/a%00'],
    ['a line break', '/r/a%0a'],
    ['a space that is not escaped', '/r/a b'],
    ['a tab', '/r/a\tb'],
    ['a space at the beginning', '/r/%20a'],
    ['a no-break space at the end', '/r/a%C2%A0'],
    ['not NFC', '/r/e%CC%81'],
    ['a zero-width space', '/r/a%E2%80%8Bb'],
    ['a direction override', '/r/a%E2%80%AEb'],
    ['a byte order mark', '/r/%EF%BB%BFa'],
    ['a fragment', '/r/a#b'],
    ['path parameters', '/r/a;v=1'],
    ['path parameters before', '/r;x/a'],
    ['a resource of more than 1,024 bytes', `/all/${'a'.repeat(1_025)}`],
    ['a resource of more than 1,024 bytes in another alphabet', `/all/${encodeURIComponent('я'.repeat(513))}`],
    ['a resource of more than 32 segments', `/all${'/a'.repeat(33)}`],
    ['more than 64 segments', '/a'.repeat(65)],
    ['more than 8,192 characters', `/r/${'a'.repeat(8_200)}`],
  ])('with %s is malformed', (_name, path) => {
    expect(post(path).kind).toBe('malformed');
  });

  it.each([
    ['/', 'root'],
    ['/?x=/../%2e%2e#;', 'root'],
    ['/r/a', 'r/a'],
    ['/r/%61', 'r/a'],
    ['/r/a%20b', 'r/a b'],
    ['/r/%C3%A9', 'r/é'],
    ['/r/%252e', 'r/%2e'],
    ['/r/%252F', 'r/%2F'],
    ['/r/a%3Bb', 'r/a;b'],
    ['/r/...', 'r/...'],
    ['/r/~$&+,=:@!*', 'r/~$&+,=:@!*'],
    [`/all/${'a'.repeat(1_024)}`, 'a'.repeat(1_024)],
    [`/all${'/a'.repeat(32)}`, 'a/'.repeat(32).slice(0, -1)],
  ])('%s is decoded once', (path, resource) => {
    expect(told(post(path))).toBe(resource);
  });

  describe('that a router reads in another way than the table', () => {
    const siblings = [
      { method: 'POST', path: '/r/preview', unprotected: 'shows it only' },
      { method: 'POST', path: '/r/{name}', writes: [{ ...promote, resource: 'r/{name}' }] },
      { method: 'POST', path: '/u/@me/keys', writes: [{ ...promote, resource: 'me/keys' }] },
      { method: 'POST', path: '/u/{id}/{what}', writes: [{ ...promote, resource: 'u/{id}/{what}' }] },
      { method: 'GET', path: '/run/{name}', writes: [{ ...promote, resource: 'r/{name}' }] },
      { method: 'HEAD', path: '/{any}/{name}', reads: true },
      { method: 'HEAD', path: '/run/declared', reads: true },
      { method: 'GET', path: '/run/declared', writes: [{ ...promote, resource: 'declared' }] },
      { method: 'POST', path: '/docs/new', unprotected: 'a form only' },
      { method: 'POST', path: '/Docs/{name}/latest', writes: [{ ...promote, resource: 'latest/{name}' }] },
      { method: 'POST', path: '/{kind}/{name}/latest', writes: [{ ...promote, resource: '{kind}/{name}' }] },
    ];
    const open = table(siblings, { unrouted: 'allow_reads' });
    const asked = (method: string, path: string) => told(matchRoute(open, { method, path }));

    // Express compares letters of any case, and literals with what was sent; hono leaves some escapes.
    it.each([
      ['POST', '/r/Preview'],
      ['POST', '/r/%70review'],
      ['POST', '/r/%50REVIEW'],
      ['POST', '/u/%40me/keys'],
      ['POST', '/u/@ME/keys'],
      ['GET', '/Run/a'],
      // There is a literal of these very letters, which leads to another route than the same letters in another case.
      ['POST', '/docs/a/latest'],
    ])('is of two routes, and refused: %s %s', (method, path) => {
      expect(asked(method, path)).toBe('malformed');
    });

    it.each([
      ['POST', '/r/preview', 'unprotected'],
      ['POST', '/r/Previews', 'r/Previews'],
      ['POST', '/r/%70reviews', 'r/previews'],
      ['POST', '/u/%40you/keys', 'u/@you/keys'],
      ['POST', '/u/@me/keys', 'me/keys'],
      ['POST', '/docs/new', 'unprotected'],
      ['POST', '/Docs/a/latest', 'latest/a'],
      ['POST', '/pages/a/latest', 'pages/a'],
      ['POST', '/U/@me/keys', 'unrouted'],
      ['GET', '/elsewhere', 'reads'],
      ['HEAD', '/elsewhere', 'reads'],
      // Servers answer it by what they have for GET.
      ['HEAD', '/run/a', 'unrouted'],
      ['HEAD', '/Run/a', 'unrouted'],
      ['HEAD', '/ran/a', 'reads'],
      ['HEAD', '/run/declared', 'reads'],
    ])('is no other: %s %s', (method, path, what) => {
      expect(asked(method, path)).toBe(what);
    });
  });

  it('leads to every resource that the coordinator takes, and to no other', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 12 }),
      fc.string({ unit: 'grapheme', maxLength: 12 }),
      fc.string({
        unit: fc.constantFrom('a', '.', '/', ' ', '\u00e9', 'e\u0301', '%', '\\', '\u200b', '\u0000', ';'),
        maxLength: 8,
      }),
    );
    fc.assert(
      fc.property(text, (resource) => {
        const segments = resource.split('/');
        const flawed = segments.some((segment) => segmentFlaw(segment) !== null) || lengthFlaw(segments) !== null;
        expect(flawed).toBe(!parseResource(resource).ok);
        if (!resource.isWellFormed()) return;
        const match = post(`/all/${segments.map(encodeURIComponent).join('/')}`);
        // A backslash in a resource is fine; in a path it is a slash to some.
        if (flawed || resource.includes('\\')) expect(match.kind).not.toBe('writes');
        else expect(told(match)).toBe(resource);
      }),
      { numRuns: 2_000 },
    );
  });

  it('leads to the real ids', () => {
    const lines = readFileSync(new URL('../data/resource-ids.tsv', import.meta.url), 'utf8')
      .split('\n')
      .slice(1);
    const good = lines.map((line) => line.split('\t')).filter(([, verdict]) => verdict === 'ok');
    expect(good.length).toBeGreaterThan(10);
    for (const [id = ''] of good)
      expect(told(post(`/all/${id.split('/').map(encodeURIComponent).join('/')}`))).toBe(id);
  });

  it('of any bytes at all is matched or refused, never thrown at', () => {
    const bytes = fc.string({
      unit: fc.constantFrom('/', '%', '2', 'e', 'f', 'c', '0', 'a', '.', ';', '?', '#', '\\', '\u00ff', ' '),
      maxLength: 20,
    });
    fc.assert(
      fc.property(bytes, (path) => {
        expect(['writes', 'unrouted', 'malformed']).toContain(post(`/${path}`).kind);
      }),
      { numRuns: 2_000 },
    );
  });
});

/** The slow and obvious way: every route is tried, and of those that match the most specific is taken. */
interface Candidate {
  readonly host: string | null;
  readonly methods: readonly string[];
  readonly parts: readonly string[];
}

const rank = (part: string): number => (part.endsWith('...}') ? 2 : part.startsWith('{') ? 1 : 0);

function matches({ parts }: Candidate, segments: readonly string[]): boolean {
  const rest = parts.at(-1)?.endsWith('...}') === true;
  if (rest ? segments.length < parts.length : segments.length !== parts.length) return false;
  return parts.every((part, index) => rank(part) > 0 || part === segments[index]);
}

function best(
  candidates: readonly Candidate[],
  host: string,
  method: string,
  segments: readonly string[],
): number | null {
  const fitting = candidates.filter(
    (one) => (one.host === null || one.host === host) && one.methods.includes(method) && matches(one, segments),
  );
  fitting.sort((a, b) => {
    if ((a.host === null) !== (b.host === null)) return a.host === null ? 1 : -1;
    for (const [index, part] of a.parts.entries()) {
      const difference = rank(part) - rank(b.parts[index] ?? '');
      if (difference !== 0) return difference;
    }
    return 0;
  });
  return fitting[0] === undefined ? null : candidates.indexOf(fitting[0]);
}

const candidate = fc.record({
  host: fc.constantFrom(null, null, 'h1', 'h2'),
  methods: fc.constantFrom(['GET'], ['POST'], ['GET', 'POST']),
  parts: fc
    .tuple(fc.array(fc.constantFrom('a', 'b', '{}'), { maxLength: 4 }), fc.boolean())
    .map(([parts, rest]) => [
      ...parts.map((part, index) => (part === '{}' ? `{n${index}}` : part)),
      ...(rest ? ['{r...}'] : []),
    ]),
});

/** At most one of a shape: equally specific ones are no table. */
const candidates = fc.array(candidate, { minLength: 1, maxLength: 12 }).map((all) => {
  const taken = new Set<string>();
  return all.filter(({ host, methods, parts }) => {
    const shapes = methods.map((method) =>
      [host, method, ...parts.map((part) => (rank(part) === 0 ? part : rank(part)))].join(' '),
    );
    if (shapes.some((shape) => taken.has(shape))) return false;
    for (const shape of shapes) taken.add(shape);
    return true;
  });
});

describe('matching', () => {
  it('finds what trying every route finds', () => {
    const request = fc.record({
      host: fc.constantFrom('h1', 'h2', 'h3'),
      method: fc.constantFrom('GET', 'POST', 'PUT'),
      segments: fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 5 }),
    });
    let found = 0;
    fc.assert(
      fc.property(candidates, fc.array(request, { minLength: 5, maxLength: 20 }), (all, requests) => {
        const routes = table(
          all.map(({ host, methods, parts }) => ({
            ...(host === null ? {} : { host }),
            method: methods,
            path: `/${parts.join('/')}`,
            reads: true,
          })),
        );
        for (const { host, method, segments } of requests) {
          const match = matchRoute(routes, { host, method, path: `/${segments.join('/')}` });
          const expected = best(all, host, method, segments);
          expect(match.kind === 'reads' ? match.route?.index : null).toBe(expected);
          if (expected !== null) found += 1;
        }
      }),
      { numRuns: 1_000 },
    );
    expect(found).toBeGreaterThan(1_000);
  });

  it('takes 10,000 routes, and no more', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => ({
        method: 'POST',
        path: `/s${n % 100}/t${n}/{env}`,
        writes: [{ ...promote, resource: `s${n}/{env}` }],
      }));
    const routes = table(many(10_000));
    expect(told(matchRoute(routes, { method: 'POST', path: '/s99/t9999/x' }))).toBe('s9999/x');
    expect(told(matchRoute(routes, { method: 'POST', path: '/s98/t9999/x' }))).toBe('unrouted');
    expect(problemsOf({ version: 1, routes: many(10_001) })).toEqual(['routes: must be at most 10000']);
  });
});

describe('a pattern of resources', () => {
  it('matches as in the conflict map', () => {
    const pattern = ResourcePattern.of('release/{env}/{part...}');
    expect(['release/a', 'release/a/b', 'release/a/b/c', 'other/a/b'].map((one) => pattern.matches(one))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(() => ResourcePattern.of('release//x')).toThrow('is no pattern of resources: segment 2: it is empty');
  });
});
