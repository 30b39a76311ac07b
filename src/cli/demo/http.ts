import { request } from 'node:http';

export interface HttpAnswer {
  readonly status: number;
  readonly etag: string;
  readonly body: Readonly<Record<string, unknown>>;
}

const TIMEOUT_MS = 15_000;

/** One request on a connection of its own: one that was idle while its process stood still may be dead. */
export function sendJson(
  url: URL,
  method: string,
  headers: Readonly<Record<string, string>>,
  body?: unknown,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const call = request(url, { method, headers, agent: false, signal }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        try {
          const text = Buffer.concat(chunks).toString('utf8');
          const json: unknown = text === '' ? {} : JSON.parse(text);
          resolve({
            status: response.statusCode ?? 0,
            etag: response.headers.etag ?? '',
            body: json as HttpAnswer['body'],
          });
        } catch (error) {
          reject(error);
        }
      });
    });
    call.on('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
