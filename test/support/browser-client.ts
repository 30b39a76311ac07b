import { type RequestOptions, request } from 'node:http';

/** What a browser would do with the answers of one host: it keeps cookies, sends them along, and says which page asks. */
export interface BrowserClient {
  readonly cookies: Map<string, string>;
  /** What the last answer set, whole. */
  readonly setCookies: readonly string[];
  fetch(path: string, options?: BrowserRequest): Promise<BrowserAnswer>;
}

export interface BrowserRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  readonly body?: string;
  /** The page that asks; null: nothing is said of it. Default: our own. */
  readonly origin?: string | null;
}

export interface BrowserAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown> & { readonly reason?: string };
}

let clients = 0;

/** Each has an address of its own, so that none is held to account for the failures of others. */
export function browserClient(base: string): BrowserClient {
  clients += 1;
  const localAddress = `127.1.${Math.floor(clients / 250)}.${(clients % 250) + 1}`;
  const cookies = new Map<string, string>();
  let setCookies: readonly string[] = [];
  return {
    cookies,
    get setCookies() {
      return setCookies;
    },
    async fetch(path, { method = 'GET', headers = {}, json, body, origin = base } = {}) {
      const sent: Record<string, string> = {
        ...(cookies.size === 0 ? {} : { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') }),
        ...(origin === null || method === 'GET' ? {} : { origin }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      };
      const answer = await send(
        `${base}${path}`,
        { method, headers: sent, localAddress },
        json === undefined ? body : JSON.stringify(json),
      );
      setCookies = answer.headers.getSetCookie();
      for (const line of setCookies) {
        const [, name = '', value = '', rest = ''] = /^([^=]+)=([^;]*)(.*)$/.exec(line) ?? [];
        if (/;\s*max-age=0/i.test(rest)) cookies.delete(name);
        else cookies.set(name, value);
      }
      return answer;
    },
  };
}

/** Not by fetch, which keeps Host and Origin to itself. */
function send(url: string, options: RequestOptions, body: string | undefined): Promise<BrowserAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ...options, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('error', reject).on('end', () => {
        const pairs = response.rawHeaders.flatMap((name, at, all) =>
          at % 2 === 0 ? [[name, all[at + 1] ?? ''] as [string, string]] : [],
        );
        const isJson = /json/.test(response.headers['content-type'] ?? '');
        resolve({
          status: response.statusCode ?? 0,
          headers: new Headers(pairs),
          text,
          body: isJson ? (JSON.parse(text) as BrowserAnswer['body']) : {},
        });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
