import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRehearsalConfig, RehearsalConfigError } from '../../src/rehearsal/config.js';
import { readPointer } from '../../src/rehearsal/json-pointer.js';
import { fillJson, fillText, UnfilledPlace } from '../../src/rehearsal/template.js';
import { rehearsalConfig } from '../support/broken-targets/rehearsal.js';

const MINIMAL = `version: 1
target: { name: release-api }
runs: { headers: { writ-lease: "{lease}", writ-fencing-token: "{token}" } }
resources:
  - resource: release/rehearsal
    action: promote
    change_class: shared_pointer
    read: { path: /releases/rehearsal }
    write: { method: PUT, path: /releases/rehearsal }
    changes: { a: { body: { image: "a-{unique}" } }, b: { body: { image: "b-{unique}" } } }
`;

/** What is wrong with it, as `path: message`. */
function problemsOf(text: string): string[] {
  try {
    parseRehearsalConfig(text);
    return [];
  } catch (error) {
    if (!(error instanceof RehearsalConfigError)) throw error;
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
}

describe('a configuration', () => {
  it('has defaults for what most services have alike', () => {
    const config = parseRehearsalConfig(MINIMAL);
    expect(config.target.timeout).toBe(10_000);
    expect(config.resources[0]?.read).toMatchObject({ version: 'etag', content: '' });
    expect(config.problem).toEqual({
      retryable: '/retryable',
      next: '/next',
      resolver: '/resolver',
      expected: '/expected_version',
      current: '/current_version',
    });
    expect(problemsOf(rehearsalConfig({ runKey: 'k', proxyPort: 1 }))).toEqual([]);
  });

  it('stands in for the coordinator over gRPC or over HTTP, not both', () => {
    const http = '{ listen: "127.0.0.1:17411", upstream: "127.0.0.1:7411" }';
    const coordinator = (text: string) => problemsOf(`${MINIMAL}coordinator: { ${text} }\n`);
    expect(coordinator(`http_proxy: ${http}`)).toEqual([]);
    expect(coordinator(`http_proxy: ${http}, proxy: { listen: "127.0.0.1:17410" }`)).toEqual([
      expect.stringMatching(/^coordinator: give one of proxy and http_proxy/),
    ]);
  });

  it('is told all that is wrong with it, each with its path', () => {
    const text = `version: 2
target: { name: "release api", timeout: 10 }
coordinator: { proxy: { listen: nowhere }, unreachable: { command: [x] } }
runs: { headers: { "writ lease": "{lease}", a: "{leese}" }, extra: 1 }
resources:
  - resource: release/rehearsal
    action: promote
    change_class: pointer
    read: { path: releases, version: version }
    write: { method: PUSH, path: /releases }
    changes: { a: { body: { list: ["{content}", "{etaq}"] } } }
`;
    const paths = problemsOf(text).map((problem) => problem.split(':')[0]);
    for (const path of [
      'version',
      'target.name',
      'target.timeout',
      'coordinator.proxy.listen',
      'runs.headers.writ lease',
      'runs.headers.a',
      'runs.extra',
      'resources[0].change_class',
      'resources[0].read.path',
      'resources[0].read.version',
      'resources[0].write.method',
      'resources[0].changes.a.body.list[1]',
      'resources[0].changes.b',
    ])
      expect(paths, path).toContain(path);
    expect(problemsOf(text).join('\n')).toContain('{etaq} is not known here; there are {run_id}');
  });

  it('is told what only the whole can say', () => {
    const without = (text: string) => MINIMAL.replace('{ writ-lease: "{lease}", writ-fencing-token: "{token}" }', text);
    expect(problemsOf(without('{ authorization: "Bearer {credential}" }'))).toEqual([
      'runs.audience: is needed, since a template says {credential}',
    ]);
    expect(problemsOf(without('{ authorization: "Bearer {secret}" }'))).toEqual([
      'runs.secret: is needed, since a template says {secret}',
      'runs.headers: must present what the run holds: {lease} with {token}, or {credential}',
    ]);
    const [head = '', resource = ''] = MINIMAL.split('resources:\n');
    expect(problemsOf(`${head}resources:\n${resource}${resource}`)).toEqual([
      'resources[1].resource: release/rehearsal with this action is there already',
    ]);
    expect(problemsOf(`${MINIMAL}coordinator: { unreachable: { command: [x] } }\n`)[0]).toContain('go together');
  });

  it('is told where it is no YAML, or says a thing twice', () => {
    expect(problemsOf('a: [')).toHaveLength(1);
    expect(problemsOf(`${MINIMAL}version: 1\n`)[0]).toMatch(/unique/i);
  });
});

describe('templates', () => {
  it('put values into texts, encoded where they stand in a path', () => {
    expect(fillText('"{version}"', { version: 41 })).toBe('"41"');
    expect(fillText('/doc/{unique}', { unique: 'a/b' }, encodeURIComponent)).toBe('/doc/a%2Fb');
    expect(fillText('{"image": 1, {other thing}', {})).toBe('{"image": 1, {other thing}');
  });

  it('keep the type of a value that a string stands for', () => {
    const values = { content: { members: ['ann'], 'a/b': 1 }, version: 41, unique: 'u' };
    expect(
      fillJson({ m: '{content/members}', v: '{version}', t: 'x-{version}', n: [null, 1, '{unique}'] }, values),
    ).toEqual({
      m: ['ann'],
      v: 41,
      t: 'x-41',
      n: [null, 1, 'u'],
    });
    expect(fillJson('{content/a~1b}', values)).toBe(1);
  });

  it('refuse a place that there is nothing for, rather than leave it out', () => {
    expect(() => fillText('{etag}', { etag: null })).toThrow(UnfilledPlace);
    expect(() => fillText('{content/none}', { content: {} })).toThrow(UnfilledPlace);
    // What every object has is no value of ours.
    expect(() => fillText('{constructor}', {})).toThrow(UnfilledPlace);
    expect(() => fillText('{content/constructor}', { content: {} })).toThrow(UnfilledPlace);
  });

  it('leave values alone that look like places', () => {
    fc.assert(
      fc.property(fc.string(), (secret) => {
        expect(fillText('<{secret}>', { secret, lease: 'never' })).toBe(`<${secret}>`);
      }),
    );
  });
});

describe('JSON pointers', () => {
  it('find every value by the path to it', () => {
    const escaped = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1');
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 4 }), fc.jsonValue(), (keys, value) => {
        const nested = keys.reduceRight<unknown>((inner, key) => Object.fromEntries([[key, inner]]), value);
        expect(readPointer(nested, keys.map((key) => `/${escaped(key)}`).join(''))).toEqual(value);
      }),
    );
  });

  it('find nothing beside it', () => {
    expect(readPointer({ a: [1, 2] }, '/a/2')).toBeUndefined();
    expect(readPointer({ a: 'text' }, '/a/length')).toBeUndefined();
    expect(readPointer([1], '/length')).toBeUndefined();
  });
});
