import { describe, expect, it } from 'vitest';
import type { Lease, LogEvent } from '../../src/console/api/shapes.js';
import { leaseChanges } from '../../src/console/pure/lease-changes.js';
import { byExpiry, filtered } from '../../src/console/pure/lease-filter.js';
import { ResourceTree, type TreeRow } from '../../src/console/pure/resource-tree.js';
import { barOf } from '../../src/console/pure/timeline.js';
import { type Standing, type Waiter, type WaitNode, waitersBehind, waitForest } from '../../src/console/pure/waits.js';
import { windowOf } from '../../src/console/pure/window.js';

const lease = (leaseId: string, resources: readonly string[], more: Partial<Lease> = {}): Lease => ({
  leaseId,
  runId: `run-${leaseId}`,
  state: 'LEASE_STATE_ACTIVE',
  expiresAt: '2026-12-01T10:00:00Z',
  entries: resources.map((resource) => ({ resource })),
  ...more,
});

const shown = (rows: readonly TreeRow[]): string[] =>
  rows.map((row) =>
    row.is === 'entry'
      ? `${'.'.repeat(row.depth)}= ${row.held.lease.leaseId}`
      : `${'.'.repeat(row.depth)}${row.segment} ${row.held}/${row.waiting}`,
  );

describe('the tree of resources', () => {
  const tree = new ResourceTree([
    lease('a', ['release/prod-eu', 'dns/eu/a']),
    lease('b', ['release/prod-us', 'release'], { expiresAt: '2026-12-01T09:00:00Z' }),
    lease('c', ['release/prod-eu'], { state: 'LEASE_STATE_WAITING' }),
  ]);

  it('counts each lease once at every resource above its entries', () => {
    expect(shown(tree.rows((_, depth) => depth < 1))).toEqual([
      'dns/eu/a 1/0',
      '.= a',
      'release 2/1',
      '.= b',
      '.prod-eu 1/1',
      '.prod-us 1/0',
    ]);
  });

  it('shows what is opened, entries before what is below', () => {
    expect(shown(tree.rows((path) => path.startsWith('release')))).toEqual([
      'dns/eu/a 1/0',
      'release 2/1',
      '.= b',
      '.prod-eu 1/1',
      '..= a',
      '..= c',
      '.prod-us 1/0',
      '..= b',
    ]);
  });

  it('tells the expiry that comes first below', () => {
    const [, release] = tree.rows(() => false);
    expect(release).toMatchObject({ segment: 'release', nearestExpiry: '2026-12-01T09:00:00Z' });
  });

  it('takes names that an object would trip over, and ten thousand leases', () => {
    const odd = new ResourceTree([lease('x', ['__proto__/constructor', 'toString'])]);
    expect(shown(odd.rows(() => false))).toEqual(['__proto__/constructor 1/0', 'toString 1/0']);
    const many = Array.from({ length: 10_000 }, (_, index) =>
      lease(String(index), [`tenant/${index % 100}/job/${index}`]),
    );
    const rows = new ResourceTree(many).rows((_, depth) => depth === 0);
    expect(rows).toHaveLength(101);
    expect(rows[0]).toMatchObject({ segment: 'tenant', held: 10_000 });
  });
});

describe('what is shown of the leases', () => {
  const all = [
    lease('a', ['release/eu'], { purpose: 'Ship it' }),
    lease('b', ['dns/eu'], { state: 'LEASE_STATE_WAITING' }),
  ];

  it('is what fits all filters', () => {
    const none = { resource: '', run: '', purpose: '', state: '' } as const;
    expect(filtered(all, none)).toBe(all);
    expect(filtered(all, { ...none, resource: 'eu' })).toHaveLength(2);
    expect(filtered(all, { ...none, resource: 'eu', state: 'waiting' })).toEqual([all[1]]);
    expect(filtered(all, { ...none, purpose: 'ship' })).toEqual([all[0]]);
    expect(filtered(all, { ...none, run: 'run-b' })).toEqual([all[1]]);
  });

  it('is in the order of the ends', () => {
    const first = lease('z', ['a'], { expiresAt: '2026-12-01T09:59:59.999999Z' });
    expect(byExpiry([...all, first]).map(({ leaseId }) => leaseId)).toEqual(['z', 'a']);
  });

  it('is on the page only as far as it is seen', () => {
    expect(windowOf(0, 340, 34, 10_000)).toEqual({ from: 0, to: 18 });
    expect(windowOf(34_000, 340, 34, 10_000)).toEqual({ from: 992, to: 1_018 });
    expect(windowOf(9_999_999, 340, 34, 100)).toEqual({ from: 100, to: 100 });
    expect(windowOf(0, 340, 34, 0)).toEqual({ from: 0, to: 0 });
  });
});

describe('a bar of the timeline', () => {
  const at = (seconds: number) => new Date(seconds * 1_000).toISOString();

  it('goes from the grant to the expiry, within what is shown', () => {
    expect(barOf({ grantedAt: at(25), expiresAt: at(50), maxExpiresAt: at(75) }, 0, 100_000)).toEqual({
      from: 250,
      to: 500,
      limit: 750,
      beginsBefore: false,
      endsAfter: false,
    });
    expect(barOf({ grantedAt: at(-5), expiresAt: at(500), maxExpiresAt: at(700) }, 0, 100_000)).toEqual({
      from: 0,
      to: 1_000,
      limit: null,
      beginsBefore: true,
      endsAfter: true,
    });
  });
});

describe('who waits for whom', () => {
  const waiter = (leaseId: string, place: number, ...waitsFor: [string, Standing?][]): Waiter => ({
    leaseId,
    runId: `run-${leaseId}`,
    purpose: '',
    place,
    since: '',
    resources: [],
    waitsFor: waitsFor.map(([id, standing = 'holds']) => ({
      leaseId: id,
      runId: `run-${id}`,
      purpose: '',
      resource: 'x',
      rule: '',
      standing,
    })),
  });
  const paths = (nodes: readonly WaitNode[], above = ''): string[] =>
    nodes.flatMap((node) => [
      `${above}${node.leaseId}+${node.behind}`,
      ...paths(node.waitedForBy, `${above}${node.leaseId} < `),
    ]);

  it('has holders at the top, and chains below them', () => {
    const forest = waitForest([waiter('c', 2, ['a'], ['b', 'waits']), waiter('b', 1, ['a']), waiter('e', 1, ['d'])]);
    expect(paths(forest)).toEqual(['a+3', 'a < b+1', 'a < b < c+0', 'a < c+0', 'd+1', 'd < e+0']);
  });

  it('says of what has ended how it stands in the way, once for all its writes in doubt', () => {
    const forest = waitForest([
      waiter('b', 1, ['a', 'in doubt'], ['a', 'in doubt']),
      waiter('d', 1, ['c', 'lock delay']),
    ]);
    expect(paths(forest)).toEqual(['a+1', 'a < b+0', 'c+1', 'c < d+0']);
    expect(forest.map(({ standing }) => standing)).toEqual(['in doubt', 'lock delay']);
    expect(forest[0]?.waitedForBy[0]?.standing).toBe('waits');
  });

  it('ends, also when what was read is a circle', () => {
    expect(paths(waitForest([waiter('a', 1, ['b', 'waits'], ['h']), waiter('b', 1, ['a', 'waits'])]))).toEqual([
      'h+2',
      'h < a+1',
      'h < a < b+0',
    ]);
  });
});

describe('who is granted when a lease ends', () => {
  const holds = (leaseId: string, standing: Standing = 'holds') => ({
    leaseId,
    runId: `run-${leaseId}`,
    purpose: '',
    resource: 'r',
    rule: '',
    standing,
  });
  const asks = (leaseId: string, since: string, ...waitsFor: Waiter['waitsFor']): Waiter => ({
    ...{ leaseId, runId: `run-${leaseId}`, purpose: '', place: 0, resources: ['r'] },
    since,
    waitsFor,
  });

  it('is whoever waits for nothing else, the one that has waited longest first', () => {
    const waiters = [
      asks('late', '2026-12-01T10:02:00Z', holds('a')),
      asks('first', '2026-12-01T10:00:00Z', holds('a')),
      asks('for two', '2026-12-01T10:01:00Z', holds('a'), holds('b')),
      asks('behind', '2026-12-01T10:03:00Z', holds('a'), holds('first', 'waits')),
      asks('elsewhere', '2026-12-01T10:00:00Z', holds('b')),
    ];
    const { next, others } = waitersBehind(waiters, ({ leaseId }) => leaseId === 'a');
    expect(next.map(({ leaseId }) => leaseId)).toEqual(['first', 'late']);
    expect(others.map(({ leaseId }) => leaseId)).toEqual(['for two', 'behind']);
  });

  it('is nobody who waits for what has ended already', () => {
    const waiters = [
      asks('doubts', '', holds('a', 'in doubt')),
      asks('both', '', holds('a'), holds('a', 'lock delay')),
    ];
    const { next, others } = waitersBehind(waiters, () => true);
    expect(next).toEqual([]);
    expect(others.map(({ leaseId }) => leaseId)).toEqual(['both']);
  });
});

describe('what events mean for the leases that were read', () => {
  const event = (kind: string, more: Partial<LogEvent> = {}): LogEvent => ({
    namespace: 'default',
    revision: '1',
    time: '2026-12-01T10:00:00Z',
    kind,
    runId: '',
    leaseId: '',
    hash: '',
    ...more,
  });

  it('is new numbers of renewed ones, and as little reading as possible', () => {
    const changes = leaseChanges([
      event('lease_granted', { leaseId: 'new' }),
      event('lease_granted', { leaseId: 'short' }),
      event('lease_ended', { leaseId: 'short' }),
      event('credentials_issued', { leaseId: 'old' }),
      event('leases_renewed', { body: '{"runId":"r","renewals":[{"leaseId":"old","expiresAt":1796119200000000}]}' }),
    ]);
    expect([...changes.touched]).toEqual(['new']);
    expect([...changes.ended]).toEqual(['short']);
    expect([...changes.renewed]).toEqual([['old', 1_796_119_200_000]]);
    expect(changes.everything).toBe(false);
  });

  it('is everything, where a map was put, something was missed, or a body is not understood', () => {
    expect(leaseChanges([event('conflict_map_put')]).everything).toBe(true);
    expect(leaseChanges([]).everything).toBe(true);
    expect(leaseChanges([event('leases_renewed', { body: '{"renewals":[{"id":1}]}' })]).everything).toBe(true);
    expect(leaseChanges([event('leases_renewed', { body: 'no' })]).everything).toBe(true);
  });
});
