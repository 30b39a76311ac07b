// What the web console may import: its own files and the libraries that are built into it; and nothing imports it.
// dependency-cruiser reads no TSX.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseSync } from '@swc/core';

const CONSOLE = 'src/console';
const LIBRARIES = /^(preact|@codemirror\/[a-z-]+|@lezer\/highlight)(\/|$)/;
/** Texts that are built into it. */
const TEXTS = new Set(['docs/conflict-map.md', 'docs/operations.md', 'docs/reason-codes.md']);

const filesBelow = (directory) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(({ name }) => /\.tsx?$/.test(name))
    .map(({ parentPath, name }) => join(parentPath, name));

/** The sources that a module names, in declarations and in calls of import(). */
function importsOf(file) {
  const found = [];
  const walk = (node) => {
    if (Array.isArray(node)) return node.forEach(walk);
    if (typeof node !== 'object' || node === null) return undefined;
    if (/^(Import|Export(Named|All))Declaration$/.test(node.type) && node.source) found.push(node.source.value);
    if (node.type === 'CallExpression' && node.callee.type === 'Import') found.push(node.arguments[0].expression.value);
    return Object.values(node).forEach(walk);
  };
  walk(parseSync(readFileSync(file, 'utf8'), { syntax: 'typescript', tsx: file.endsWith('.tsx') }).body);
  return found;
}

const problems = [];
const own = filesBelow(CONSOLE);
const graph = new Map();

for (const file of own) {
  const targets = [];
  for (const source of importsOf(file)) {
    const [path] = source.split('?');
    if (!path.startsWith('.')) {
      if (!LIBRARIES.test(path)) problems.push(`${file} imports ${source}: no library of the console`);
      continue;
    }
    const target = normalize(join(dirname(file), path));
    if (!target.startsWith(`${CONSOLE}/`) && !TEXTS.has(target))
      problems.push(`${file} imports ${source}: outside of the console`);
    targets.push(target.replace(/\.js$/, ''));
  }
  graph.set(file.replace(/\.tsx?$/, ''), targets);
}

const done = new Set();
function visit(module, path) {
  if (path.includes(module))
    return problems.push(`a cycle: ${[...path.slice(path.indexOf(module)), module].join(' → ')}`);
  if (done.has(module)) return undefined;
  for (const target of graph.get(module) ?? []) visit(target, [...path, module]);
  return done.add(module);
}
for (const module of graph.keys()) visit(module, []);

for (const file of filesBelow('src').filter((path) => !path.startsWith(`${CONSOLE}/`))) {
  if (!/\/console\//.test(readFileSync(file, 'utf8'))) continue;
  for (const source of importsOf(file)) {
    if (normalize(join(dirname(file), source)).startsWith(`${CONSOLE}/`)) problems.push(`${file} imports the console`);
  }
}

for (const problem of problems) console.error(problem);
if (problems.length === 0) console.log(`✔ the console's layers hold (${own.length} modules)`);
process.exitCode = problems.length === 0 ? 0 : 1;
