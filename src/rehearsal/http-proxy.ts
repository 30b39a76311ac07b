import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { listening, parseAddress } from './pause-server.js';
import { type HeldVerdict, Holds, type PresentedToCheck, type StandIn } from './stand-in.js';

const CHECK = /^\/v1\/fence\/check(?:$|\?)/;

export interface HttpProxyOptions {
  /** `host:port` on which the gateway of the service finds the coordinator; plain text. */
  readonly listen: string;
  /** `host:port`: the HTTP port of the coordinator; plain text. */
  readonly upstream: string;
}

/** The stand-in for services behind a gateway, which asks over HTTP (`GET /v1/fence/check`). */
export class HttpCoordinatorProxy implements StandIn {
  private readonly holds = new Holds();
  private front: Server | undefined;
  private asked = false;
  private silent = false;

  private constructor(private readonly options: HttpProxyOptions) {}

  static async start(options: HttpProxyOptions): Promise<HttpCoordinatorProxy> {
    const proxy = new HttpCoordinatorProxy(options);
    await proxy.mend();
    return proxy;
  }

  get wasAsked(): boolean {
    return this.asked;
  }

  get listen(): string {
    return this.options.listen;
  }

  get howToAsk(): string {
    return `let its gateway ask ${this.listen} (coordinator.http_proxy.listen)`;
  }

  async cut(): Promise<void> {
    const { front } = this;
    this.front = undefined;
    if (front === undefined) return;
    const closed = new Promise((resolve) => front.close(resolve));
    front.closeAllConnections();
    await closed;
  }

  hush(): void {
    this.silent = true;
  }

  async mend(): Promise<void> {
    if (this.silent) this.front?.closeAllConnections();
    this.silent = false;
    if (this.front !== undefined) return;
    const front = createServer((question, answer) => this.pass(question, answer));
    const { host, port } = parseAddress(this.options.listen);
    await listening(front, host, port);
    this.front = front;
  }

  holdVerdict(matches: (presented: PresentedToCheck) => boolean): HeldVerdict {
    return this.holds.add(matches);
  }

  async stop(): Promise<void> {
    this.holds.letAllGo();
    await this.cut();
  }

  private pass(question: IncomingMessage, answer: ServerResponse): void {
    const { host, port } = parseAddress(this.options.upstream);
    const { method, url: path = '/', rawHeaders: headers } = question;
    const isCheck = CHECK.test(path);
    if (isCheck) this.asked = true;
    if (this.silent) return;
    const hold = isCheck ? this.holds.of(() => presentedIn(question)) : undefined;
    // Whoever asked sees a connection that breaks, as from a coordinator that is gone.
    const broken = () => answer.destroy();
    const up = request({ host, port, method, path, headers }, (told) => {
      const send = () => {
        answer.writeHead(told.statusCode ?? 502, told.rawHeaders);
        told.pipe(answer);
      };
      told.on('error', broken);
      if (hold === undefined) send();
      else hold(send);
    });
    up.on('error', broken);
    answer.on('error', () => undefined).on('close', () => up.destroy());
    question.pipe(up);
  }
}

function presentedIn({ headers }: IncomingMessage): PresentedToCheck {
  const one = (name: string) => String(headers[name] ?? '');
  const credential = /^(?:bearer|dpop) +(.*)$/i.exec(one('writ-authorization'))?.[1] ?? '';
  return { leaseId: one('writ-lease'), credential };
}
