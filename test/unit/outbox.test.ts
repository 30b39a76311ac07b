import { EventEmitter } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Outbox } from '../../src/transports/grpc/outbox.js';

/** A stream that takes so many frames before it says that it is full. */
class Surface extends EventEmitter {
  readonly frames: number[][] = [];
  constructor(public room: number) {
    super();
  }
  write(frame: number[]): boolean {
    this.frames.push(frame);
    return this.frames.length < this.room;
  }
}

let told: string[];

function outboxOn(surface: Surface, weightOf = () => 1): Outbox<number, number[]> {
  told = [];
  return new Outbox<number, number[]>({
    surface,
    frameOf: (items) => [...items],
    weightOf,
    blocked: (isBlocked) => told.push(isBlocked ? 'blocked' : 'free'),
    emptied: () => told.push('emptied'),
    tooSlow: ({ reason }) => told.push(reason),
  });
}

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => vi.useRealTimers());

describe('an outbox', () => {
  it('sends what comes in one turn in one message, up to a size', async () => {
    const surface = new Surface(Number.POSITIVE_INFINITY);
    const outbox = outboxOn(surface, () => 100);
    for (let item = 0; item < 7; item += 1) outbox.push(item);
    expect(surface.frames).toEqual([]);
    await nextTurn();
    expect(surface.frames).toEqual([[0, 1, 2], [3, 4, 5], [6]]);
    expect(told).toEqual(['emptied']);
  });

  it('writes nothing more to a stream that is full, until it is not', async () => {
    const surface = new Surface(1);
    const outbox = outboxOn(surface);
    outbox.push(1);
    await nextTurn();
    for (const item of [2, 3]) outbox.push(item);
    await nextTurn();
    expect([surface.frames, told, outbox.isEmpty]).toEqual([[[1]], ['blocked'], false]);
    surface.room = 10;
    surface.emit('drain');
    expect([surface.frames, told, outbox.isEmpty]).toEqual([[[1], [2, 3]], ['blocked', 'free', 'emptied'], true]);
    vi.advanceTimersByTime(60_000);
    expect(told).not.toContain('SLOW_READER');
  });

  it('gives up a reader that has read nothing for 10 s', async () => {
    const surface = new Surface(1);
    outboxOn(surface).push(1);
    await nextTurn();
    vi.advanceTimersByTime(9_999);
    expect(told).toEqual(['blocked']);
    vi.advanceTimersByTime(1);
    expect(told).toEqual(['blocked', 'SLOW_READER']);
  });

  it('gives up a reader for whom 8,192 items wait, and takes no more of them', async () => {
    const surface = new Surface(1);
    const outbox = outboxOn(surface);
    outbox.push(0);
    await nextTurn();
    for (let item = 0; item < 8_192; item += 1) outbox.push(item);
    expect(told).toEqual(['blocked']);
    outbox.push(1);
    expect(told).toEqual(['blocked', 'SLOW_READER']);
    outbox.close();
    outbox.push(2);
    surface.emit('drain');
    expect([surface.frames.length, outbox.isEmpty, told.length]).toEqual([1, true, 2]);
  });
});
