import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Duplex } from '../../src/clients/common/channel.js';
import type { WritClient } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import { toDuration, toTimestamp } from '../../src/clients/common/time.js';
import { digestOf } from '../../src/clients/target/fence-table.js';
import { createFenceView, type FenceView } from '../../src/clients/target/index.js';
import type { FenceUpdate, WatchFencesRequest, WatchFencesResponse } from '../../src/gen/writ/v1/fence_service.js';
import { Access, Scope } from '../../src/gen/writ/v1/types.js';
import { eventually } from '../support/coordinator.js';

type Told = NonNullable<FenceUpdate['update']>;

const LEASE = 'a'.repeat(32);
const DATABASE = 1_800_000_000_000_000;
const SECOND = 1_000_000;
const place = (revision: number) => ({ revision: BigInt(revision), hash: String(revision).padStart(64, '0') });

/** A watch as the coordinator's side has it. */
class FakeWatch implements Duplex<WatchFencesRequest, WatchFencesResponse> {
  readonly sent: WatchFencesRequest[] = [];
  readonly received: AsyncIterable<WatchFencesResponse>;
  private readonly queue: (WatchFencesResponse | WritError)[] = [];
  private wake: () => void = () => undefined;
  private isOver = false;

  constructor() {
    this.received = this.reading();
  }

  get resumedFrom(): bigint | undefined {
    const [first] = this.sent;
    return first?.said?.$case === 'open' ? first.said.value.resumeFrom?.revision : undefined;
  }

  /** The number of the last ping. */
  async pinged(): Promise<bigint> {
    const numbers = () => this.sent.flatMap(({ said }) => (said?.$case === 'ping' ? [said.value.number] : []));
    return (await eventually(numbers, (all) => all.length > 0)).at(-1) as bigint;
  }

  tell(...updates: Told[]): void {
    this.push({ updates: updates.map((update) => ({ update })), goingAway: false });
  }

  async mark(revision: number, databaseTime: number): Promise<void> {
    const number = await this.pinged();
    this.tell({ $case: 'mark', value: { number, position: place(revision), databaseTime: toTimestamp(databaseTime) } });
  }

  fail(code: WritError['code'], reason: string): void {
    this.push(new WritError(code, 'it ended', { reason }));
  }

  send(request: WatchFencesRequest): void {
    this.sent.push(request);
  }

  leave(): void {
    this.cancel();
  }

  finish(): void {
    this.cancel();
  }

  cancel(): void {
    this.isOver = true;
    this.wake();
  }

  private push(one: WatchFencesResponse | WritError): void {
    this.queue.push(one);
    this.wake();
  }

  private async *reading(): AsyncGenerator<WatchFencesResponse> {
    while (!this.isOver) {
      const next = this.queue.shift();
      if (next instanceof WritError) throw next;
      if (next === undefined)
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      else yield next;
    }
  }
}

let watches: FakeWatch[];
let view: FenceView;
let problems: unknown[];
/** How far the clocks here are ahead of the machine's, in milliseconds. */
const ahead = { monotonic: 0, wall: 0 };

beforeEach(() => {
  watches = [];
  problems = [];
  Object.assign(ahead, { monotonic: 0, wall: 0 });
  const [monotonic, wall] = [performance.now.bind(performance), Date.now.bind(Date)];
  vi.spyOn(performance, 'now').mockImplementation(() => monotonic() + ahead.monotonic);
  vi.spyOn(Date, 'now').mockImplementation(() => wall() + ahead.wall);
});

afterEach(() => {
  view?.close();
  vi.restoreAllMocks();
});

function open(maxLeases?: number): void {
  const watchFences = async () => {
    const watch = new FakeWatch();
    watches.push(watch);
    return watch;
  };
  const client = { namespace: '', fence: { watchFences } } as unknown as WritClient;
  const onProblem = (_: string, error: unknown) => void problems.push(error);
  view = createFenceView({ client, onProblem, ...(maxLeases === undefined ? {} : { maxLeases }) });
}

async function watchNumber(index: number): Promise<FakeWatch> {
  await eventually(
    () => watches.length,
    (count) => count > index,
  );
  return watches[index] as FakeWatch;
}

const snapshot: Told[] = [
  { $case: 'snapshot', value: { mapVersion: 1n, maxClockSkew: toDuration(1_000) } },
  {
    $case: 'kind',
    value: {
      pattern: 'wiki/{page...}',
      decides: true,
      maxViewAge: toDuration(60_000),
      observes: false,
      trackedActions: [],
    },
  },
];

function fence(endsAt: number, leaseId = LEASE): Told {
  const entry = {
    resource: 'wiki/home',
    scope: Scope.SCOPE_EXACT,
    access: Access.ACCESS_WRITE,
    actions: ['edit'],
    fencingToken: 7n,
    exclusive: true,
    implied: false,
    withheld: false,
  };
  const leaseDigest = Buffer.from(digestOf(leaseId), 'binary');
  return { $case: 'fence', value: { leaseDigest, runId: 'r', endsAt: toTimestamp(endsAt), entries: [entry] } };
}

const reached = (revision: number): Told => ({ $case: 'reached', value: place(revision) });
const reason = (): string =>
  view.check({ leaseId: LEASE, writes: [{ resource: 'wiki/home', action: 'edit', token: 7n }] }).reason;
const becomes = (expected: string) => eventually(reason, (seen) => seen === expected);

async function ready(endsAt = DATABASE + 600 * SECOND): Promise<FakeWatch> {
  open();
  const watch = await watchNumber(0);
  watch.tell(...snapshot, fence(endsAt), reached(5));
  await watch.mark(5, DATABASE);
  await view.ready();
  return watch;
}

describe('the age of a view', () => {
  it('is proved by marks that answer its own pings, and by nothing else', async () => {
    open();
    const watch = await watchNumber(0);
    watch.tell(...snapshot, fence(DATABASE + 600 * SECOND), reached(5));
    watch.tell({ $case: 'mark', value: { number: 999n, position: place(5), databaseTime: toTimestamp(DATABASE) } });
    await eventually(
      () => view.leases,
      (count) => count === 1,
    );
    expect(reason()).toBe('view_not_ready');
    await watch.mark(5, DATABASE);
    await becomes('ok');
  });

  it.each([
    ['the machine sleeps, and the monotonic clock with it', { monotonic: 0, wall: 61_000 }],
    ['the process is stopped', { monotonic: 61_000, wall: 61_000 }],
    ['the wall clock is set back meanwhile', { monotonic: 61_000, wall: -3_600_000 }],
    ['the wall clock is set ahead', { monotonic: 0, wall: 3_600_000 }],
  ])('is too great after its bound when %s, until the next mark', async (_, moved) => {
    const watch = await ready();
    Object.assign(ahead, { monotonic: 59_000, wall: 59_000 });
    expect(reason()).toBe('ok');
    Object.assign(ahead, moved);
    expect(reason()).toBe('view_too_old');
    expect(view.ageMs).toBeGreaterThan(60_000);
    // Asked before the clocks moved, it proves as much as then.
    const before = Number(await watch.pinged());
    await eventually(
      async () => Number(await watch.pinged()),
      (number) => number > before,
    );
    await watch.mark(5, DATABASE + 62 * SECOND);
    await becomes('ok');
  });

  it('counts from the ping, however late its mark comes', async () => {
    open();
    const watch = await watchNumber(0);
    watch.tell(...snapshot, fence(DATABASE + 600 * SECOND), reached(5));
    const number = await watch.pinged();
    Object.assign(ahead, { monotonic: 61_000, wall: 61_000 });
    watch.tell({ $case: 'mark', value: { number, position: place(5), databaseTime: toTimestamp(DATABASE) } });
    await view.ready();
    expect(reason()).toBe('view_too_old');
  });
});

describe('an expiry', () => {
  it('comes when the database clock could be there, also if no renewal is heard of', async () => {
    await ready(DATABASE + 10 * SECOND);
    expect(reason()).toBe('ok');
    // The clocks of both sides drift apart a little.
    Object.assign(ahead, { monotonic: 9_995, wall: 9_995 });
    expect(reason()).toBe('expired');
  });
});

describe('a watch that ends', () => {
  it('is opened again from where it was, and what is known is decided by for as long as before', async () => {
    const watch = await ready();
    watch.tell(reached(9));
    watch.fail('UNAVAILABLE', 'SHUTTING_DOWN');
    const next = await watchNumber(1);
    await eventually(
      () => next.sent.length,
      (count) => count > 0,
    );
    expect(next.resumedFrom).toBe(9n);
    expect(reason()).toBe('ok');
    next.tell({ $case: 'ended', value: { leaseDigest: Buffer.from(digestOf(LEASE), 'binary'), reason: 3 } });
    await becomes('released');
    expect(problems).toHaveLength(1);
  });

  it('in the middle of a snapshot leaves what was known before', async () => {
    const watch = await ready();
    watch.tell(...snapshot);
    watch.fail('UNAVAILABLE', '');
    const next = await watchNumber(1);
    await eventually(
      () => next.sent.length,
      (count) => count > 0,
    );
    expect(next.resumedFrom).toBe(5n);
    expect(reason()).toBe('ok');
    next.tell(reached(6));
    await eventually(
      () => view.leases,
      (count) => count === 1,
    );
    expect(reason()).toBe('ok');
  });

  it('because it is too far behind begins anew, and keeps what it knows until then', async () => {
    const watch = await ready();
    watch.fail('FAILED_PRECONDITION', 'CURSOR_EXPIRED');
    const next = await watchNumber(1);
    await eventually(
      () => next.sent.length,
      (count) => count > 0,
    );
    expect(next.resumedFrom).toBeUndefined();
    expect(reason()).toBe('ok');
    next.tell(...snapshot, reached(20));
    await becomes('unknown_lease');
  });

  it('because history was lost makes it forget everything (F13)', async () => {
    const watch = await ready();
    watch.fail('FAILED_PRECONDITION', 'HISTORY_FORKED');
    await becomes('view_not_ready');
    const next = await watchNumber(1);
    await eventually(
      () => next.sent.length,
      (count) => count > 0,
    );
    expect(next.resumedFrom).toBeUndefined();
    next.tell(...snapshot, reached(3));
    await next.mark(3, DATABASE);
    await becomes('unknown_lease');
  });

  it('because there are more leases than it may hold leaves nothing to decide by', async () => {
    open(1);
    const watch = await watchNumber(0);
    watch.tell(...snapshot, fence(DATABASE + SECOND), fence(DATABASE + SECOND, 'b'.repeat(32)), reached(5));
    await eventually(
      () => problems.length,
      (count) => count > 0,
    );
    expect(String(problems[0])).toMatch(/more than 1 live leases/);
    expect(reason()).toBe('view_not_ready');
  });

  it('by the hand of its owner is not opened again', async () => {
    await ready();
    view.close();
    view.close();
    expect(reason()).toBe('view_not_ready');
    expect(watches).toHaveLength(1);
    open();
    view.close();
    await expect(view.ready()).rejects.toThrow(/closed/);
  });
});
