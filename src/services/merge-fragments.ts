import {
  Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  Scalar,
  visit,
  YAMLMap,
  YAMLSeq,
} from 'yaml';
import { parseYaml, readSources, type SourceProblem, type TextFile } from './map-source.js';

export type MergedFragments =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problems: readonly SourceProblem[] };

/** Keys in the order in which a merged document has them; others come after, for the schema to refuse. */
const ORDER: readonly string[] = [
  'version',
  'unmatched',
  'resolvers',
  'profiles',
  'kinds',
  'implies',
  'conflicts',
  'aliases',
  'sets',
  'tasks',
  'assertions',
];

/**
 * Makes one text of the fragments of a directory, to be put as one document: lists joined, maps united,
 * comments kept, and each part marked with the file it is from. One file alone is left as it is.
 */
export function mergeFragments(files: readonly TextFile[]): MergedFragments {
  const { problems } = readSources(files);
  if (problems.length > 0) return { ok: false, problems };
  const only = files[0];
  if (files.length === 1 && only !== undefined) return { ok: true, text: only.text };
  const merged = new Map<string, Part>();
  const closing: string[] = [];
  for (const file of files) {
    const flaw = addFragment(file, merged, closing);
    if (flaw !== null) return { ok: false, problems: [flaw] };
  }
  const root = new YAMLMap<Scalar, Node>();
  const keys = [...merged.keys()].sort((a, b) => rank(a) - rank(b));
  for (const key of keys) {
    const { node, comment } = merged.get(key) as Part;
    root.set(comment === '' ? new Scalar(key) : headed(new Scalar(key), comment), node);
  }
  const document = new Document(root, { schema: 'failsafe' });
  if (closing.length > 0) document.comment = closing.join('\n');
  return { ok: true, text: document.toString({ lineWidth: 0 }) };
}

/** The value of a top-level key, and what is said above the key. */
interface Part {
  readonly node: Node;
  readonly comment: string;
}

const rank = (key: string): number => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);

function addFragment(file: TextFile, merged: Map<string, Part>, closing: string[]): SourceProblem | null {
  const lines = new LineCounter();
  const document = parseYaml(file.text, lines);
  const anchored = anchorIn(document);
  if (anchored !== null) {
    const { line, col } = lines.linePos(anchored.range?.[0] ?? 0);
    return {
      code: 'anchor_in_fragment',
      message:
        'YAML anchors cannot be used in a map of several files: they would lose what they refer to. Write the value out, or use a profile.',
      path: '',
      file: file.name,
      line,
      column: col,
    };
  }
  if (document.comment) closing.push(document.comment);
  if (!isMap(document.contents)) {
    if (document.commentBefore) closing.push(document.commentBefore);
    return null;
  }
  let heading = document.commentBefore ?? '';
  for (const pair of document.contents.items as Pair<Node, Node | null>[]) {
    if (!isScalar(pair.key) || pair.value === null) continue;
    const above = [heading, pair.key.commentBefore, pair.value.commentBefore].filter((comment) => comment).join('\n');
    // What was said above something that is there already is said above what comes next.
    heading = addPart(String(pair.key.value), pair.value, above, file.name, merged) ? '' : above;
  }
  if (heading !== '') closing.push(heading);
  return null;
}

function anchorIn(document: Document): Node | null {
  let found: Node | null = null;
  visit(document, {
    Node(_key, node) {
      if ('anchor' in node && node.anchor) found = node;
      return found === null ? undefined : visit.BREAK;
    },
  });
  return found;
}

/** Adds a part; false when it says nothing new, so that its comment has found no place. */
function addPart(key: string, value: Node, above: string, file: string, merged: Map<string, Part>): boolean {
  const present = merged.get(key)?.node;
  const comment = [` from ${file}`, above].filter((line) => line !== '').join('\n');
  if (isSeq(value)) {
    const list = isSeq(present) ? present : new YAMLSeq();
    for (const [index, item] of (value.items as Node[]).entries()) list.add(index === 0 ? headed(item, comment) : item);
    merged.set(key, { node: list, comment: '' });
    return value.items.length > 0;
  }
  if (isMap(value)) {
    const map = isMap(present) ? present : new YAMLMap();
    for (const [index, pair] of (value.items as Pair<Node, Node | null>[]).entries()) {
      if (index === 0) headed(pair.key, comment);
      map.items.push(pair);
    }
    merged.set(key, { node: map, comment: '' });
    return value.items.length > 0;
  }
  if (present !== undefined) return false;
  merged.set(key, { node: value, comment: above });
  return true;
}

function headed<T extends Node>(node: T, comment: string): T {
  node.commentBefore = node.commentBefore ? `${comment}\n${node.commentBefore}` : comment;
  return node;
}
