import type { Lease, LeaseEntry } from '../api/shapes.js';

/** What is held and asked for, by the paths of resources: as people think of it. */

/** One entry of a lease, at its resource. */
export interface HeldEntry {
  readonly lease: Lease;
  readonly entry: LeaseEntry;
}

interface Node {
  readonly path: string;
  readonly segment: string;
  readonly children: Map<string, Node>;
  readonly entries: HeldEntry[];
  /** Leases at or below. */
  readonly held: Set<string>;
  readonly waiting: Set<string>;
  /** RFC 3339; the earliest of all below. */
  nearestExpiry: string;
}

/** A row of the tree, as it is shown. */
export type TreeRow =
  | {
      readonly is: 'resource';
      readonly key: string;
      readonly path: string;
      readonly segment: string;
      readonly depth: number;
      readonly open: boolean;
      readonly held: number;
      readonly waiting: number;
      /** Empty: nothing below is held. */
      readonly nearestExpiry: string;
    }
  | { readonly is: 'entry'; readonly key: string; readonly depth: number; readonly held: HeldEntry };

export class ResourceTree {
  readonly #root: Node = newNode('', '');

  constructor(leases: readonly Lease[]) {
    for (const lease of leases) {
      for (const entry of lease.entries ?? []) this.#add(lease, entry);
    }
  }

  /** Resources that are opened show what is below them; a resource alone below another one stands beside it. */
  rows(isOpen: (path: string, depth: number) => boolean): TreeRow[] {
    const rows: TreeRow[] = [];
    for (const child of sorted(this.#root.children)) addRows(rows, child, 0, isOpen);
    return rows;
  }

  #add(lease: Lease, entry: LeaseEntry): void {
    const path = entry.resource ?? '';
    let node = this.#root;
    for (let end = path.indexOf('/'); ; end = path.indexOf('/', end + 1)) {
      const below = end < 0 ? path : path.slice(0, end);
      node = childOf(node, below);
      count(node, lease);
      if (end < 0) break;
    }
    node.entries.push({ lease, entry });
  }
}

function newNode(path: string, segment: string): Node {
  return {
    path,
    segment,
    children: new Map(),
    entries: [],
    held: new Set(),
    waiting: new Set(),
    nearestExpiry: '',
  };
}

function childOf(node: Node, path: string): Node {
  const segment = path.slice(node.path === '' ? 0 : node.path.length + 1);
  let child = node.children.get(segment);
  if (child === undefined) {
    child = newNode(path, segment);
    node.children.set(segment, child);
  }
  return child;
}

function count(node: Node, { leaseId, state, expiresAt = '' }: Lease): void {
  if (state === 'LEASE_STATE_WAITING') {
    node.waiting.add(leaseId);
    return;
  }
  node.held.add(leaseId);
  if (expiresAt !== '' && (node.nearestExpiry === '' || expiresAt < node.nearestExpiry)) node.nearestExpiry = expiresAt;
}

const byName = new Intl.Collator('en', { numeric: true });

const sorted = (children: ReadonlyMap<string, Node>): Node[] =>
  [...children.values()].sort((a, b) => byName.compare(a.segment, b.segment));

function addRows(rows: TreeRow[], from: Node, depth: number, isOpen: (path: string, depth: number) => boolean): void {
  let node = from;
  let segment = node.segment;
  while (node.entries.length === 0 && node.children.size === 1) {
    const [only] = node.children.values();
    if (only === undefined) break;
    node = only;
    segment = `${segment}/${node.segment}`;
  }
  const open = isOpen(node.path, depth);
  const { path, held, waiting, nearestExpiry } = node;
  rows.push({
    is: 'resource',
    key: `r ${path}`,
    path,
    segment,
    depth,
    open,
    held: held.size,
    waiting: waiting.size,
    nearestExpiry,
  });
  if (!open) return;
  for (const [index, entry] of node.entries.entries())
    rows.push({ is: 'entry', key: `e ${path} ${entry.lease.leaseId} ${index}`, depth: depth + 1, held: entry });
  for (const child of sorted(node.children)) addRows(rows, child, depth + 1, isOpen);
}
