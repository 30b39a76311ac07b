import { join } from 'node:path';
import type { Finding } from '../../src/cli/doctor/finding.js';
import { cli } from './cli.js';

export interface Examination {
  readonly code: number;
  readonly stdout: string;
  /** What was found about one thing. */
  of(what: string): Finding[];
}

/** Runs `writ doctor` on a coordinator whose data would lie in the directory's `data`, where none is running. */
export async function doctor(directory: string, env: Readonly<Record<string, string>>): Promise<Examination> {
  const { code, stdout, json } = await cli(['doctor', '--json'], {
    env: {
      WRIT_DATA_DIR: join(directory, 'data'),
      WRIT_GRPC_PORT: '0',
      WRIT_HTTP_PORT: '0',
      WRIT_ENDPOINT: '127.0.0.1:1',
      ...env,
    },
  });
  const { findings } = json() as unknown as { findings: Finding[] };
  return { code, stdout, of: (what) => findings.filter((finding) => finding.what === what) };
}
