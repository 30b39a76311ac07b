import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What comments refer to must be found by a newcomer: docs/design.md says what ids mean, and where topics are described. */

const page = readFileSync('docs/design.md', 'utf8');
const rows = page.split('\n').flatMap((line) => /^\| ([^|]+) \|/.exec(line)?.[1] ?? []);

const sources = (folder: string): string[] =>
  (readdirSync(folder, { recursive: true }) as string[])
    .filter((name) => /\.(ts|tsx|proto|mjs)$/.test(name))
    .map((name) => join(folder, name))
    .filter((path) => !path.startsWith('src/gen/'));

/** Ids in parentheses, such as (P3) and (C7, C1b), as comments and titles of tests have them. */
const CITED = /\(((?:[A-Z]\d{1,2}[a-c]?)(?:(?:, | and )[A-Z]\d{1,2}[a-c]?)*)[):;]/g;
const TOPIC = /\(design: ([a-zA-Z, -]+?)[);]/g;

function citedIn(folders: readonly string[], pattern: RegExp): Map<string, string> {
  const found = new Map<string, string>();
  for (const path of folders.flatMap(sources)) {
    const text = readFileSync(path, 'utf8').replace(/\n\s*(\*|\/\/) ?/g, ' ');
    for (const [, cited = ''] of text.matchAll(pattern)) found.set(cited, path);
  }
  return found;
}

function explains(id: string): boolean {
  const number = Number(/\d+/.exec(id));
  if (/^P\d/.test(id)) return number <= 11;
  if (/^F\d/.test(id)) return number <= 26;
  if (/^T\d/.test(id)) return number <= 8;
  return rows.includes(id) || new RegExp(`\\b${id}: `).test(page);
}

describe('docs/design.md', () => {
  it('says what every id means that the code and its tests name', () => {
    const cited = citedIn(['src', 'proto', 'test'], CITED);
    const unknown = [...cited].flatMap(([ids, path]) =>
      ids.split(/, | and /).flatMap((id) => (explains(id) ? [] : [`${id} in ${path}`])),
    );
    expect(cited.size).toBeGreaterThan(50);
    expect(unknown).toEqual([]);
  });

  it('says where every topic of the design is described that the code names', () => {
    const topics = rows.flatMap((row) => (row.includes('the engine') ? row.split(', ') : [row]));
    const named = citedIn(['src', 'test'], TOPIC);
    expect(named.size).toBeGreaterThan(5);
    expect([...named].filter(([topic]) => !topics.includes(topic))).toEqual([]);
  });

  it('names files and folders that are there', () => {
    const paths = [...page.matchAll(/`((?:src|test|proto|migrations)[\w./-]*)`/g)].map(([, path = '']) => path);
    expect(paths.length).toBeGreaterThan(30);
    expect(paths.filter((path) => !existsSync(path))).toEqual([]);
  });
});
