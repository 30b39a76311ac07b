import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Duplex } from '../../src/clients/common/channel.js';
import { WritError } from '../../src/clients/common/errors.js';
import { NumberedStream, StreamLost } from '../../src/clients/common/numbered-stream.js';

/** A replica that a test speaks for: asked by texts, which it answers by their numbers. */
type Message = readonly { readonly number: number; readonly question: string }[];
type Response = { readonly answers?: Readonly<Record<number, string>>; readonly goingAway?: boolean };

class Replica implements Duplex<Message, Response> {
  readonly sent: Message[] = [];
  readonly calls: string[] = [];
  private readonly queue: (Response | { readonly end: unknown })[] = [];
  private wake: () => void = () => undefined;

  send(message: Message): void {
    this.sent.push(message);
  }
  get received(): AsyncIterable<Response> {
    return this.read();
  }
  private async *read(): AsyncGenerator<Response> {
    for (;;) {
      const next = this.queue.shift();
      if (next === undefined) await new Promise<void>((resolve) => (this.wake = resolve));
      else if ('end' in next) {
        if (next.end !== null) throw next.end;
        return;
      } else yield next;
    }
  }
  say(response: Response): void {
    this.queue.push(response);
    this.wake();
  }
  end(error: unknown = null): void {
    this.queue.push({ end: error });
    this.wake();
  }
  finish(): void {
    this.calls.push('finish');
  }
  leave(): void {
    this.calls.push('leave');
    this.end();
  }
  cancel(): void {
    this.calls.push('cancel');
  }
}

let replicas: Replica[];
let opening: (() => Promise<Replica>) | null;
let ended: number;
let stream: NumberedStream<string, string, Message, Response>;

beforeEach(() => {
  vi.useFakeTimers();
  replicas = [];
  opening = null;
  ended = 0;
  stream = new NumberedStream<string, string, Message, Response>({
    async open() {
      if (opening !== null) return opening();
      const replica = new Replica();
      replicas.push(replica);
      return replica;
    },
    requestOf: (questions) => questions,
    read({ answers = {}, goingAway = false }, answered) {
      for (const [number, answer] of Object.entries(answers)) answered(Number(number), answer);
      return { goingAway };
    },
    ended: () => {
      ended += 1;
    },
  });
});
afterEach(() => vi.useRealTimers());

const within = (timeoutMs: number) => ({ timeoutMs, silentMs: timeoutMs / 2 });
const turn = () => vi.advanceTimersByTimeAsync(0);
const lost = (asked: Promise<string>) => asked.catch((error: unknown) => error instanceof StreamLost);

describe('questions on one stream', () => {
  it('of one turn travel in one message, and each is answered by its number', async () => {
    const asked = [stream.ask('a', within(1_000)), stream.ask('b', within(1_000))];
    await turn();
    const [replica] = replicas;
    expect(replica?.sent.map((message) => message.map(({ question }) => question))).toEqual([['a', 'b']]);
    const [first, second] = replica?.sent[0] ?? [];
    replica?.say({ answers: { [second?.number ?? 0]: 'B', [first?.number ?? 0]: 'A', 77: 'nobody asked' } });
    expect(await Promise.all(asked)).toEqual(['A', 'B']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are given back at once when the stream ends, and while there is none', async () => {
    const asked = lost(stream.ask('a', within(1_000)));
    await turn();
    replicas[0]?.end(new WritError('UNAVAILABLE', 'gone'));
    expect(await asked).toBe(true);
    expect(await lost(stream.ask('b', within(1_000)))).toBe(true);
    expect([replicas.length, ended]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(200);
    void lost(stream.ask('c', within(1_000)));
    await turn();
    expect(replicas).toHaveLength(2);
  });

  it('are asked in another way for a minute of a coordinator that does not know the method', async () => {
    opening = () => Promise.reject(new WritError('UNIMPLEMENTED', 'what?'));
    expect(await lost(stream.ask('a', within(1_000)))).toBe(true);
    opening = null;
    await vi.advanceTimersByTimeAsync(59_000);
    expect(await lost(stream.ask('b', within(1_000)))).toBe(true);
    await vi.advanceTimersByTimeAsync(2_000);
    void lost(stream.ask('c', within(1_000)));
    await turn();
    expect(replicas).toHaveLength(1);
  });

  it('come back by chance within a while that doubles (F5)', async () => {
    opening = () => Promise.reject(new WritError('UNAVAILABLE', 'down'));
    const tried: number[] = [];
    const began = performance.now();
    for (let ms = 0; ms < 10_000; ms += 50) {
      const before = ended;
      await lost(stream.ask('a', within(1_000)));
      if (ended > before) tried.push(performance.now() - began);
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(tried.length).toBeGreaterThan(3);
    expect(tried.length).toBeLessThan(9);
  });

  it('on a stream that is slow are waited for to the end; one on which nothing at all is heard is left', async () => {
    const answered = stream.ask('a', within(1_000));
    const slow = stream.ask('b', within(2_000)).catch((error: WritError) => error.code);
    await turn();
    await vi.advanceTimersByTimeAsync(400);
    replicas[0]?.say({ answers: { [replicas[0].sent[0]?.[0]?.number ?? 0]: 'A' } });
    await answered;
    await vi.advanceTimersByTimeAsync(1_600);
    expect([await slow, replicas[0]?.calls]).toEqual(['DEADLINE_EXCEEDED', []]);
    const silent = lost(stream.ask('c', within(1_000)));
    const other = lost(stream.ask('d', within(5_000)));
    await vi.advanceTimersByTimeAsync(500);
    expect([await silent, await other, replicas[0]?.calls, ended]).toEqual([true, true, ['leave'], 1]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('go to another replica when this one is going away, which still answers what it was asked', async () => {
    const before = stream.ask('a', within(1_000));
    await turn();
    replicas[0]?.say({ goingAway: true });
    await turn();
    const after = stream.ask('b', within(1_000));
    await turn();
    expect([replicas.length, replicas[0]?.calls]).toEqual([2, ['finish']]);
    replicas[0]?.say({ answers: { [replicas[0].sent[0]?.[0]?.number ?? 0]: 'A' } });
    replicas[0]?.end();
    replicas[1]?.say({ answers: { [replicas[1].sent[0]?.[0]?.number ?? 0]: 'B' } });
    expect(await Promise.all([before, after])).toEqual(['A', 'B']);
  });

  it('that are aborted reject with the reason, and are answered to nobody', async () => {
    const giveUp = new AbortController();
    const asked = stream.ask('a', within(1_000), giveUp.signal).catch((error: unknown) => error);
    await turn();
    giveUp.abort('enough');
    expect(await asked).toBe('enough');
    replicas[0]?.say({ answers: { [replicas[0].sent[0]?.[0]?.number ?? 0]: 'A' } });
    await turn();
    expect(vi.getTimerCount()).toBe(0);
    expect(await stream.ask('b', within(1_000), giveUp.signal).catch((error: unknown) => error)).toBe('enough');
  });

  it('that nobody waits for any more when the stream has come are not asked', async () => {
    const replica = new Replica();
    let open: (opened: Replica) => void = () => undefined;
    opening = () => new Promise((resolve) => (open = resolve));
    const gone = new AbortController();
    const aborted = stream.ask('a', within(1_000), gone.signal).catch(() => 'aborted');
    void lost(stream.ask('b', within(1_000)));
    await turn();
    gone.abort();
    open(replica);
    await turn();
    expect(await aborted).toBe('aborted');
    expect(replica.sent.map((message) => message.map(({ question }) => question))).toEqual([['b']]);
  });

  it('are at most a thousand', async () => {
    const asked = Array.from({ length: 1_000 }, () => lost(stream.ask('a', within(60_000))));
    expect(await lost(stream.ask('b', within(60_000)))).toBe(true);
    await turn();
    replicas[0]?.end();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([true]));
  });
});
