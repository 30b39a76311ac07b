import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** The guides refer to each other, to files and to their own sections; what they name must be there. */

const PAGES = [
  'README.md',
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

const withoutCode = (path: string): string => readFileSync(path, 'utf8').replace(/^```[\s\S]*?^```/gm, '');

/** As GitHub names the section of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');

function anchors(path: string, level = /^#+ (.*)$/gm): string[] {
  return [...withoutCode(path).matchAll(level)].map(([, heading = '']) => anchorOf(heading));
}

describe.each(PAGES)('%s', (page) => {
  const text = withoutCode(page);

  it('links to files and sections that are there', () => {
    const dead = [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
      if (/^https?:/.test(link)) return [];
      const [path = '', section = ''] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      if (!existsSync(target)) return [link];
      return section !== '' && target.endsWith('.md') && !anchors(target).includes(section) ? [link] : [];
    });
    expect(dead).toEqual([]);
  });

  it('lists all of its sections, in their order, where it lists them', () => {
    const begin = text.slice(0, text.search(/^## /m));
    const list = /^(?:- \[[^\]]*\]\(#|Contents: )[\s\S]*?\n\n/m.exec(begin)?.[0];
    if (list === undefined) return;
    const listed = [...list.matchAll(/\]\(#([^)]*)\)/g)].map(([, section = '']) => section);
    expect(listed).toEqual(anchors(page, /^## (.*)$/gm));
  });
});
