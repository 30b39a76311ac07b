import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The command line as users run it: the build, in a process of its own. */
export const CLI = fileURLToPath(new URL('../../dist/cli/index.js', import.meta.url));

export interface CliEnded {
  /** -2: a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<CliEnded>;
  /** Resolves when the output has it. */
  says(text: string): Promise<void>;
}

/** Starts one with this environment and no other; the usual ports may be anybody's. */
export function startCli(env: Readonly<Record<string, string>>, args: readonly string[], stdin = ''): CliProcess {
  if (!existsSync(CLI)) throw new Error('dist/cli/index.js is missing: run `npm run build` first (npm test does)');
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { PATH: process.env.PATH ?? '', WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // Who does not read what is given may be gone before it is.
  child.stdin.on('error', () => undefined).end(stdin);
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<CliEnded>((resolve) =>
    child.once('close', (code, signal) => resolve({ code: code ?? (signal === null ? -1 : -2), stdout, stderr })),
  );
  const says = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!`${stdout}${stderr}`.includes(text)) return;
        child.stdout.off('data', look);
        child.stderr.off('data', look);
        resolve();
      };
      child.stdout.on('data', look);
      child.stderr.on('data', look);
      look();
      ended.then((end) =>
        reject(
          new Error(`it ended with ${end.code} before it said ${JSON.stringify(text)}:\n${end.stdout}${end.stderr}`),
        ),
      );
    });
  return { child, ended, says };
}
