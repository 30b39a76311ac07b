import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Checkpoint } from '../../src/services/api.js';
import { isSigned } from '../../src/services/checkpoint-signature.js';
import { fileCheckpointSigner } from '../../src/services/checkpoint-signer.js';
import { formatHeader } from '../../src/services/log-export.js';
import {
  checkpointJson,
  ScheduledCheckpoints,
  type ScheduledCheckpointsOptions,
} from '../../src/services/scheduled-checkpoints.js';
import { cli } from '../support/cli.js';

const directory = mkdtempSync(join(tmpdir(), 'writ-checkpoints-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const signer = fileCheckpointSigner(join(directory, 'key.pem'));
const NOW = 1_764_425_000_000_007;

describe('scheduled checkpoints (A2)', () => {
  it('are written of every log that has moved, and one that fails keeps no other from it', async () => {
    const hashes: Record<string, string> = { a: 'a'.repeat(64), b: 'b'.repeat(64) };
    const written: Checkpoint[] = [];
    const problems: string[] = [];
    const noted: string[] = [];
    const engine = (namespace: string) => ({
      namespace,
      notReady: null,
      head: { revision: 7, hash: hashes[namespace] ?? '', time: NOW },
      async read(question: (view: never) => unknown) {
        if (namespace === 'bad') throw new Error('gone');
        return { value: question(undefined as never), revision: 7, now: NOW };
      },
      store: {
        async keepCheckpoint({ namespace: of, hash, sentTo }: { namespace: string; hash: string; sentTo: string }) {
          // Sent already: a database that is full keeps no checkpoint from where it is safe.
          expect(written.some((one) => one.hash === hash)).toBe(true);
          if (of === 'a') throw new Error('the disk is full');
          noted.push(`${of} ${hash[0]} ${sentTo}`);
        },
      },
    });
    const checkpoints = new ScheduledCheckpoints({
      everyMs: 1_000,
      engines: () => ['a', 'bad', 'b'].map(engine) as unknown as ReturnType<ScheduledCheckpointsOptions['engines']>,
      signer,
      write: (checkpoint) => written.push(checkpoint),
      sentTo: 'log of test',
      onProblem: (message) => problems.push(message),
    });
    await checkpoints.writeAll();
    await checkpoints.writeAll();
    hashes.b = 'c'.repeat(64);
    await checkpoints.writeAll();
    expect(written.map(({ namespace, hash }) => [namespace, hash[0]])).toEqual([
      ['a', 'a'],
      ['b', 'b'],
      ['b', 'c'],
    ]);
    expect(written.every(isSigned)).toBe(true);
    expect(noted).toEqual(['b b log of test', 'b c log of test']);
    // Three times the bad one, and once the note of the first.
    expect(problems).toHaveLength(4);
  });

  it('are lines that verify takes as they are', async () => {
    const checkpoint = signer.sign('default', 7, 'a'.repeat(64), NOW);
    const line = join(directory, 'line.json');
    await writeFile(line, JSON.stringify({ level: 'info', checkpoint: checkpointJson(checkpoint), msg: 'checkpoint' }));
    const older = signer.sign('default', 0, '0'.repeat(64), NOW);
    const log = join(directory, 'log.ndjson');
    await writeFile(
      log,
      `${formatHeader({ namespace: 'default', afterRevision: 0, afterHash: null, checkpoint: older })}\n`,
    );
    const { code, stdout } = await cli(['audit', 'verify', log, '--checkpoint', line]);
    expect([code, stdout]).toEqual([7, expect.stringContaining('goes on to revision 7 at least')]);
  });
});
