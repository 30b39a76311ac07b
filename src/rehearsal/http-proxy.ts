import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { Front } from './front.js';
import { parseAddress } from './pause-server.js';
import type { PresentedToCheck } from './stand-in.js';

const CHECK = /^\/v1\/fence\/check(?:$|\?)/;

export interface HttpProxyOptions {
  /** `host:port` on which the gateway of the service finds the coordinator; plain text. */
  readonly listen: string;
  /** `host:port`: the HTTP port of the coordinator; plain text. */
  readonly upstream: string;
}

/** The stand-in for services behind a gateway, which asks over HTTP (`GET /v1/fence/check`). */
export class HttpCoordinatorProxy extends Front<Server> {
  private constructor(private readonly options: HttpProxyOptions) {
    super(options.listen, {
      open: () => createServer((question, answer) => this.pass(question, answer)),
      breakAll: (server) => server.closeAllConnections(),
    });
  }

  static async start(options: HttpProxyOptions): Promise<HttpCoordinatorProxy> {
    const proxy = new HttpCoordinatorProxy(options);
    await proxy.mend();
    return proxy;
  }

  get howToAsk(): string {
    return `let its gateway ask ${this.listen} (coordinator.http_proxy.listen)`;
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
