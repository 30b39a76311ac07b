import { randomUUID } from 'node:crypto';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Server as NetServer } from 'node:net';

/** A request of the service under rehearsal that stands still somewhere. */
export interface Standstill {
  /** Given to the service, which fetches it where it is to wait. */
  readonly url: string;
  /** Resolves when the service has come there. */
  readonly reached: Promise<void>;
  /** Lets it go on; idempotent, also before it has come. */
  letGo(): void;
}

/**
 * Where a service that knows the hook waits: in its answer to `GET /…` lies the permission to go on. So the suite knows
 * that the service stands there, and no time has to be guessed.
 */
export class PauseServer {
  private readonly waiting = new Map<string, (answer: ServerResponse) => void>();

  private constructor(
    private readonly server: Server,
    private readonly base: string,
  ) {}

  static async start(listen: string): Promise<PauseServer> {
    const server = createServer();
    const { host, port } = parseAddress(listen);
    await listening(server, host, port);
    const { address, family, port: taken } = server.address() as AddressInfo;
    const pauses = new PauseServer(server, `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`);
    server.on('request', (request, answer) => {
      const arrive = pauses.waiting.get(request.url ?? '');
      if (arrive === undefined) answer.writeHead(404).end();
      else arrive(answer);
    });
    return pauses;
  }

  arrange(): Standstill {
    const path = `/${randomUUID()}`;
    let arrived: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const standing: ServerResponse[] = [];
    let isFree = false;
    this.waiting.set(path, (answer) => {
      if (isFree) answer.writeHead(204).end();
      else standing.push(answer);
      arrived();
    });
    return {
      url: `${this.base}${path}`,
      reached,
      letGo: () => {
        isFree = true;
        for (const answer of standing.splice(0)) answer.writeHead(204).end();
      },
    };
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** `host:port`, an IPv6 address in brackets. */
export function parseAddress(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at).replace(/^\[(.*)\]$/, '$1'), port: Number(address.slice(at + 1)) };
}

/** Resolves when it listens; rejects when it cannot. */
export function listening(server: NetServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
