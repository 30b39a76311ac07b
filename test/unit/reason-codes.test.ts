import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ROLES } from '../../src/auth/principal.js';
import { rolesFor } from '../../src/auth/roles.js';
import { found as foundCodes, reasonCodes } from '../../src/console/pure/reason-codes.js';
import { EVENT_KINDS } from '../../src/engine/event-codec.js';

/**
 * docs/reason-codes.md and docs/conflict-map.md name every code there is, and no other; so do the tables of methods,
 * settings and metrics. What there is, is read from the contract and the source as text: a code that nobody explained
 * fails here, and so does an explanation of a code that is gone.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

function filesBelow(directory: string, ending: string): string[] {
  return readdirSync(`${ROOT}${directory}`, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(ROOT.length));
}

const sorted = (codes: Iterable<string>): string[] => [...new Set(codes)].sort();

// ---------------------------------------------------------------------------------------------------- what is written

/** Rows of the tables of one section, by their first cell. A section ends where the next of its level begins. */
function documented(path: string, heading: string): Map<string, string[]> {
  const text = read(path);
  const from = text.indexOf(`\n## ${heading}\n`);
  if (from < 0) throw new Error(`${path} has no section "${heading}"`);
  const section = text.slice(from + 1).split(/\n## /)[0] ?? '';
  const rows = [...section.matchAll(/^\| `([^`]+)` *\|(.*)\|$/gm)];
  return new Map(rows.map(([, code = '', cells = '']) => [code, cells.split(' | ').map((cell) => cell.trim())]));
}

const GUIDE = 'docs/reason-codes.md';

// -------------------------------------------------------------------------------------------------- what there is

/** Values of every enum of the contract without their prefix; the one that stands for "unset" is left out. */
function protoEnums(): Map<string, string[]> {
  const enums = new Map<string, string[]>();
  for (const file of filesBelow('proto/writ', '.proto')) {
    for (const [, name = '', body = ''] of read(file).matchAll(/\benum (\w+) \{([^}]*)\}/g)) {
      const prefix = name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
      const values = [...body.matchAll(/^\s*([A-Z0-9_]+) = \d+;/gm)].map(([, value = '']) => value);
      enums.set(
        name,
        values.map((value) => value.replace(`${prefix}_`, '')).filter((value) => value !== 'UNSPECIFIED'),
      );
    }
  }
  return enums;
}

const SOURCES = filesBelow('src', '.ts').filter((file) => !file.startsWith('src/gen/'));

/** A fault is made by its constructor, or by a class that extends it. Its reason is a literal, so that it can be found. */
const FAULT = /(?:new Fault|super)\(\s*'([a-z_]+)',\s*'([A-Z_]+)'/g;

function faults(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const file of SOURCES) {
    for (const [, faultClass = '', reason = ''] of read(file).matchAll(FAULT))
      found.set(reason, (found.get(reason) ?? new Set()).add(statusOf(faultClass)));
  }
  return found;
}

/** As src/transports/grpc/status.ts maps it. */
const statusOf = (faultClass: string): string =>
  faultClass === 'unknown_outcome' ? 'UNAVAILABLE' : faultClass.toUpperCase();

function found(pattern: RegExp, files: readonly string[]): string[] {
  return files.flatMap((file) => [...read(file).matchAll(pattern)].flatMap((match) => match.slice(1).filter(Boolean)));
}

/** Members of a union of string literals. */
function union(file: string, type: string): string[] {
  const declared = new RegExp(`type ${type} =([^;]*);`).exec(read(file))?.[1];
  if (declared === undefined) throw new Error(`${file} declares no ${type}`);
  return [...declared.replace(/\/\*[\s\S]*?\*\//g, '').matchAll(/'(\w+)'/g)].map(([, member = '']) => member);
}

// ------------------------------------------------------------------------------------------------------------- tests

const ENUM_SECTIONS: Readonly<Record<string, string>> = {
  RefusalKind: 'Refusal kinds',
  FenceReason: 'Fence reasons',
  EndReason: 'End reasons',
  RunState: 'Run states',
  LeaseState: 'Lease states',
  ReleaseOutcome: 'Release outcomes',
  ReportOutcome: 'Report outcomes',
  FreezeOutcome: 'Freeze outcomes',
  ThawOutcome: 'Thaw outcomes',
  SigningKeyState: 'Signing key states',
  RehearsalOutcome: 'Rehearsal outcomes',
  LeaseNoticeKind: 'Lease notices',
};

/** What a request says, rather than why something is so. */
const NO_REASONS = ['Access', 'Scope', 'OnLiveConflict', 'Validation', 'WriteResult', 'SettledOutcome'];

describe('the guide to reason codes', () => {
  it('has a section for every enum of the contract that tells a reason', () => {
    expect(sorted(protoEnums().keys())).toEqual(sorted([...Object.keys(ENUM_SECTIONS), ...NO_REASONS]));
  });

  it.each(Object.entries(ENUM_SECTIONS))('explains every %s', (name, heading) => {
    expect(sorted(documented(GUIDE, heading).keys())).toEqual(sorted(protoEnums().get(name) ?? []));
  });

  it('explains every fault, with its status', () => {
    const rows = documented(GUIDE, 'Faults');
    const statuses = [...rows].map(([reason, [status = '']]) => `${reason} ${status}`);
    expect(sorted(statuses)).toEqual(
      sorted([...faults()].flatMap(([reason, all]) => [...all].map((status) => `${reason} ${status}`))),
    );
  });

  it('would notice a fault whose reason is no literal', () => {
    const hidden = SOURCES.filter(
      (file) =>
        (read(file).match(/new Fault\(/g) ?? []).length >
        found(/new Fault\(\s*'[a-z_]+',\s*('[A-Z_]+')/g, [file]).length,
    );
    expect(hidden).toEqual([]);
  });

  it('explains every reason of the HTTP port', () => {
    const own = new Set(found(/problem\(\s*c,\s*\d+,\s*'([A-Z_]+)'/g, filesBelow('src/transports/http', '.ts')));
    expect(sorted(documented(GUIDE, 'HTTP reasons').keys())).toEqual(sorted(own));
  });

  it('explains what the console says by itself', () => {
    const files = ['.ts', '.tsx'].flatMap((ending) => filesBelow('src/console', ending));
    const own = found(/new Problem\(\s*[\w.]+,\s*'([A-Z_]+)'/g, files);
    expect(sorted(documented(GUIDE, 'Reasons of the console').keys())).toEqual(sorted(own));
  });

  it('explains what the guard, the clients, the verifier and the migrations say', () => {
    const guardSql = found(/(?:THEN|reason :=) '([a-z_]+)'/g, ['src/clients/target/postgres-guard-sql.ts']);
    const guardLua = found(/return '([a-z_]+)'/g, ['src/clients/target/redis-guard-script.ts']);
    const guard = [...union('src/clients/target/guard.ts', 'GuardReason'), ...guardSql, ...guardLua];
    expect(sorted(documented(GUIDE, 'Guard reasons').keys())).toEqual(sorted(guard));
    const clients = [
      ...found(/\? '(\w+)' : '(check_failed)'/g, ['src/clients/target/check.ts']),
      ...union('src/clients/target/fence-table.ts', 'NotByView'),
      ...found(/readonly reason: '(\w+)' \| '(\w+)' \| '(\w+)'/g, ['src/clients/runner/errors.ts']),
    ];
    expect(sorted(documented(GUIDE, 'Reasons of the TypeScript clients').keys())).toEqual(sorted(clients));
    expect(sorted(documented(GUIDE, 'Verification of an export').keys())).toEqual(
      sorted(union('src/services/log-reader.ts', 'LogFault')),
    );
    expect(sorted(documented(GUIDE, 'Schema problems').keys())).toEqual(
      sorted(union('src/storage/postgres/migrate.ts', 'SchemaProblem')),
    );
  });

  it('says of every code what it means, what to do, who can do it, and whether it can be retried', () => {
    const empty = [...read(GUIDE).matchAll(/^\| `([^`]+)` \|(.*)\|$/gm)]
      .filter(([, , cells = '']) => cells.split(' | ').some((cell) => cell.trim() === ''))
      .map(([, code]) => code);
    expect(empty).toEqual([]);
  });
});

describe('the runbook in the console', () => {
  const codes = reasonCodes(read(GUIDE));

  it('has every code that the guide has, with what happened and what to do', () => {
    const rows = [...read(GUIDE).matchAll(/^\| `([^`]+)` \|/gm)].map(([, code = '']) => code);
    expect(codes.map(({ code }) => code)).toEqual(rows);
    for (const { code, chapter, cells } of codes) {
      const said = new Map(cells);
      expect(said.get('Meaning'), `${chapter}: ${code}`).toMatch(/\w/);
      expect(said.get('What to do'), `${chapter}: ${code}`).toMatch(/\w/);
    }
  });

  it('finds each by the address that links to it, and nothing else', () => {
    // As codes are written in answers, in events and in metrics.
    for (const { code } of codes) {
      for (const written of [code, code.toLowerCase(), code.toUpperCase()]) {
        const shown = foundCodes(codes, written);
        expect(new Set(shown.map(({ code: one }) => one.toUpperCase()))).toEqual(new Set([code.toUpperCase()]));
      }
    }
  });
});

describe('the reference of the conflict map', () => {
  const files = [
    ...filesBelow('src/domain/conflict-map', '.ts'),
    ...['map-source', 'map-prescan', 'merge-fragments', 'conflict-map-schema', 'conflict-map-text'].map(
      (name) => `src/services/${name}.ts`,
    ),
  ];

  it('explains every validation code', () => {
    const codes = [
      ...found(/problems\.(?:error|warn)\(\s*'(\w+)'/g, files),
      ...found(/this\.problem\(\s*(?:\w+ \? '(\w+)' : )?'(\w+)'/g, files),
      // `custom` and the like are zod's own, on the way to one of ours.
      ...found(/\bcode: (?:\w+ \? '(\w+)' : )?'(\w+)'/g, files).filter((code) => code !== 'custom'),
    ];
    expect(sorted(documented('docs/conflict-map.md', 'Validation codes').keys())).toEqual(sorted(codes));
  });
});

describe('the API guide', () => {
  it('has every method of the contract, with the roles that may call it', () => {
    const methods = filesBelow('proto', '.proto').flatMap((file) =>
      [...read(file).matchAll(/\bservice (\w+) \{([\s\S]*?)\n\}/g)].flatMap(([, service = '', body = '']) =>
        [...body.matchAll(/\brpc (\w+)\(/g)].map(([, method = '']) => `${service}/${method}`),
      ),
    );
    const rows = documented('docs/api.md', 'Roles');
    expect(sorted(rows.keys())).toEqual(sorted(methods));
    for (const [method, [roles = '']] of rows)
      expect(sorted(roles === 'all' ? ROLES : roles.split(', ')), method).toEqual(sorted(rolesFor(method) ?? []));
  });
});

describe('the tables of settings and metrics', () => {
  it('name every variable that the coordinator reads', () => {
    const variables = found(/^ {2}(WRIT_[A-Z_]+): /gm, ['src/platform/config.ts']);
    expect(sorted(documented('README.md', 'Configuration').keys())).toEqual(sorted(variables));
  });

  it('name every metric', () => {
    const files = ['src/platform/metrics.ts', ...filesBelow('src/platform/metrics', '.ts')];
    const metrics = found(/'(writ_[a-z_]+)'/g, files);
    expect(sorted(documented('docs/operations.md', 'Metrics').keys())).toEqual(sorted(metrics));
  });
});

describe('the operations guide', () => {
  it('names every kind of event, by which `writ audit events --kind` looks for it', () => {
    const [, kinds = ''] = read('docs/operations.md').split('\nKinds of events: ');
    const named = [...(kinds.split(' Allowed checks')[0] ?? '').matchAll(/`([a-z_]+)`/g)].map(([, kind = '']) => kind);
    expect(named.toSorted()).toEqual([...EVENT_KINDS].toSorted());
  });
});
