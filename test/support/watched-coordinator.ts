import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const SPANS = new URL('record-spans.mjs', import.meta.url).href;

/** A coordinator whose every word is kept. */
export interface WatchedProcess {
  /** The first line of stdout that is JSON and says `ready`; rejects when it ends before. */
  readonly ready: Promise<{ readonly grpc: string; readonly http: string }>;
  readonly ended: Promise<number | null>;
  /** All of stdout and stderr until now. */
  said(): string;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
}

/** Starts one as users run it, with spans recorded to WRIT_TEST_SPANS_FILE where that is given. */
export function watchCoordinator(env: Readonly<Record<string, string>>): WatchedProcess {
  if (!existsSync(MAIN)) throw new Error('dist/main.js is missing: run `npm run build` first');
  const child = spawn(process.execPath, ['--import', SPANS, MAIN], {
    env: { PATH: process.env.PATH ?? '', WRIT_TEST_SPANS_FILE: '/dev/null', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said: string[] = [];
  const ended = once(child, 'close').then(([code]) => code as number | null);
  let stdout = '';
  const ready = new Promise<{ grpc: string; http: string }>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said.push(text);
      stdout += text;
      const line = stdout.split('\n').find((one) => one.includes('"event":"ready"'));
      if (line !== undefined) resolve(JSON.parse(line) as { grpc: string; http: string });
    });
    void ended.then((code) => reject(new Error(`it ended with ${code} before it was ready:\n${said.join('')}`)));
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => said.push(text));
  ready.catch(() => undefined);
  return {
    ready,
    ended,
    said: () => said.join(''),
    stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}
