import { runCli } from '../../src/cli/program.js';
import type { ConnectOptions, WritClient } from '../../src/clients/common/connect.js';

/** What a command line did. */
export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** How it connected, if it did. */
  readonly connected: readonly {
    readonly endpoint: string | readonly string[];
    readonly token?: NonNullable<ConnectOptions['token']>;
    readonly tls?: object;
    readonly allowInsecure?: string;
    readonly namespace?: string;
    readonly timeoutMs?: number;
  }[];
  /** stdout as JSON. */
  json(): Record<string, unknown>;
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Answers calls; what is not there fails. */
  readonly client?: object;
  readonly stdin?: string;
  readonly tty?: boolean;
}

/** Runs a command line in this process, with a coordinator that is only played. */
export async function cli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  let [stdout, stderr] = ['', ''];
  const connected: CliResult['connected'][number][] = [];
  const code = await runCli(
    args,
    { WRIT_TOKEN: 'test-token', ...options.env },
    {
      stdout: { write: (text) => (stdout += text), isTTY: options.tty },
      stderr: { write: (text) => (stderr += text) },
      stdin: async () => options.stdin ?? '',
      connect: (how) => {
        connected.push(how);
        return { close: () => undefined, ...options.client } as unknown as WritClient;
      },
      version: '9.9.9',
    },
  );
  return { code, stdout, stderr, connected, json: () => JSON.parse(stdout) as Record<string, unknown> };
}
