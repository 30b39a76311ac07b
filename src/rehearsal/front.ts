import type { Server } from 'node:net';
import { listening, parseAddress } from './pause-server.js';
import { type HeldVerdict, Holds, type PresentedToCheck, type StandIn } from './stand-in.js';

/** What a stand-in speaks: how it opens a server, and how all connections of one are broken at once. */
export interface Spoken<S extends Server> {
  open(): S;
  breakAll(server: S): void;
}

/** What every stand-in has, whatever it speaks: the port, which is cut, falls silent and is mended, and what is held. */
export abstract class Front<S extends Server> implements StandIn {
  abstract readonly howToAsk: string;
  protected readonly holds = new Holds();
  protected asked = false;
  protected silent = false;
  private server: S | undefined;

  protected constructor(
    readonly listen: string,
    private readonly spoken: Spoken<S>,
  ) {}

  get wasAsked(): boolean {
    return this.asked;
  }

  async cut(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    this.spoken.breakAll(server);
    await closed;
  }

  hush(): void {
    this.silent = true;
  }

  async mend(): Promise<void> {
    if (this.silent && this.server !== undefined) this.spoken.breakAll(this.server);
    this.silent = false;
    if (this.server !== undefined) return;
    const server = this.spoken.open();
    const { host, port } = parseAddress(this.listen);
    await listening(server, host, port);
    this.server = server;
  }

  holdVerdict(matches: (presented: PresentedToCheck) => boolean): HeldVerdict {
    return this.holds.add(matches);
  }

  async stop(): Promise<void> {
    this.holds.letAllGo();
    await this.cut();
  }
}
