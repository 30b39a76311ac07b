import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

type Direction = 'up' | 'down';

/** One client's connection with what it leads to. */
interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  /** Gets every byte of the client a second time; what it answers nobody hears. */
  readonly shadow: Socket | undefined;
  readonly lines: Readonly<Record<Direction, Line>>;
}

/** One direction of a connection: what goes in comes out in the same order, however the delay changes meanwhile. */
class Line {
  private readonly waiting: { readonly dueAt: number; readonly deliver: () => void }[] = [];

  pass(delayMs: number, deliver: () => void): void {
    if (delayMs === 0 && this.waiting.length === 0) {
      deliver();
      return;
    }
    this.waiting.push({ dueAt: performance.now() + delayMs, deliver });
    if (this.waiting.length === 1) this.waitForFirst();
  }

  private waitForFirst(): void {
    const [first] = this.waiting;
    if (first === undefined) return;
    setTimeout(
      () => {
        first.deliver();
        this.waiting.shift();
        this.waitForFirst();
      },
      Math.max(0, first.dueAt - performance.now()),
    );
  }
}

/**
 * A bad network between a client and a server, at the level of TCP: it delays, holds back, loses, doubles and cuts.
 * `up` is towards the server.
 */
export class TcpProxy {
  /** Each chunk takes so long, both ways. */
  delayMs = 0;
  /** New connections are reset at once: nobody is there. */
  refusing = false;
  /** Of new connections the server hears everything twice, on a second connection: duplicates. */
  mirroring = false;
  /** Bytes that the server answered on second connections: it heard everything twice indeed. */
  answeredTwice = 0;
  /** Bytes that clients have sent, whether they are on their way, delivered or lost. */
  taken = 0;
  /** `performance.now()` of every connection that a client tried to make. */
  readonly attempts: number[] = [];

  private readonly pairs = new Set<Pair>();
  private readonly held = new Set<Direction>();
  private readonly lost = new Set<Direction>();

  private constructor(
    private readonly server: Server,
    private target: string,
  ) {
    server.on('connection', (client) => this.accept(client));
  }

  /** Leads to `host:port`, and listens on all addresses of the loopback network. */
  static async start(target: string): Promise<TcpProxy> {
    const server = createServer({ pauseOnConnect: true });
    const proxy = new TcpProxy(server, target);
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Where new connections lead from now on: a server that came back on another port. */
  leadTo(target: string): void {
    this.target = target;
  }

  /** Nothing goes that way any more, and nothing is lost: a half-open connection, until `letGo`. New ones too. */
  hold(...directions: readonly Direction[]): void {
    for (const direction of directions) this.held.add(direction);
    for (const pair of this.pairs) this.settle(pair);
  }

  letGo(): void {
    this.held.clear();
    for (const pair of this.pairs) this.settle(pair);
  }

  /** What goes that way from now on is lost, as by a reply that never comes. No connection is of use after that: cut it. */
  lose(direction: Direction): void {
    this.lost.add(direction);
  }

  /** Resets every connection, and loses nothing any more. */
  cut(): void {
    this.lost.clear();
    for (const { client, upstream, shadow } of this.pairs)
      for (const socket of [client, upstream, shadow]) socket?.resetAndDestroy();
    this.pairs.clear();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private accept(client: Socket): void {
    this.attempts.push(performance.now());
    client.on('error', () => undefined);
    if (this.refusing) {
      client.resetAndDestroy();
      return;
    }
    const pair: Pair = {
      client,
      upstream: this.dial(),
      shadow: this.mirroring ? this.dial().on('data', (chunk) => (this.answeredTwice += chunk.length)) : undefined,
      lines: { up: new Line(), down: new Line() },
    };
    this.pairs.add(pair);
    const end = () => {
      this.pairs.delete(pair);
      for (const socket of [pair.client, pair.upstream, pair.shadow]) socket?.destroy();
    };
    client.on('data', (chunk) => this.pass(pair, 'up', chunk)).on('close', end);
    pair.upstream.on('data', (chunk) => this.pass(pair, 'down', chunk)).on('close', end);
    this.settle(pair);
  }

  private dial(): Socket {
    const at = this.target.lastIndexOf(':');
    return connect(Number(this.target.slice(at + 1)), this.target.slice(0, at)).on('error', () => undefined);
  }

  private pass({ client, upstream, shadow, lines }: Pair, direction: Direction, chunk: Buffer): void {
    if (direction === 'up') this.taken += chunk.length;
    if (this.lost.has(direction)) return;
    const to = direction === 'up' ? [upstream, shadow] : [client];
    lines[direction].pass(this.delayMs, () => {
      for (const socket of to) if (socket?.writable === true) socket.write(chunk);
    });
  }

  private settle({ client, upstream }: Pair): void {
    if (this.held.has('up')) client.pause();
    else client.resume();
    if (this.held.has('down')) upstream.pause();
    else upstream.resume();
  }
}
