import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestDirectory } from '../support/global-setup.js';

/** The demo as users run it: T3, T4, C5, C7, C8, C10, R4, A2 on real processes, and nothing left afterwards. */

const CLI = fileURLToPath(new URL('../../dist/cli/index.js', import.meta.url));
const TIMEOUT_MS = 120_000;

interface Demo {
  readonly child: ChildProcess;
  output(): string;
  /** Resolves when it has printed this. */
  says(text: string): Promise<void>;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

let directory: string;
let temporary: string;

beforeEach(async () => {
  if (!existsSync(CLI)) throw new Error('dist/cli/index.js is missing: run `npm run build` first (npm test does)');
  directory = await makeTestDirectory('demo');
  // Its files, and those of all that it starts, lie here, so that whatever it left behind can be found.
  temporary = join(directory, 'tmp');
  await mkdir(temporary, { mode: 0o700 });
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

function startDemo(): Demo {
  const child = spawn(process.execPath, [CLI, 'demo'], {
    cwd: directory,
    // A database named here must not be touched; nor does it need anything else of the environment.
    env: { TMPDIR: temporary, WRIT_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing', WRIT_DATA_DIR: '/nowhere' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const listeners = new Set<() => void>();
  const heard = (chunk: Buffer) => {
    output += chunk.toString('utf8');
    for (const listener of listeners) listener();
  };
  child.stdout.on('data', heard);
  child.stderr.on('data', heard);
  const ended = new Promise<number | string | null>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? code));
  });
  return {
    child,
    output: () => output,
    says: (text) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (output.includes(text)) resolve();
        };
        listeners.add(look);
        void ended.then(() => reject(new Error(`it ended before it said "${text}":\n${output}`)));
        look();
      }),
    ended,
  };
}

/** Command lines of processes that have to do with this demo: by the ids it named, and by its directory. */
async function leftOver(demo: Demo): Promise<string[]> {
  const named = [...demo.output().matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid)).filter(isAlive);
  const commands = await Promise.all(
    (await readdir('/proc').catch(() => [])).map(async (pid) => {
      const command = /^\d+$/.test(pid) ? await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') : '';
      return command.includes(temporary) ? [`${pid}: ${command.replaceAll('\0', ' ')}`] : [];
    }),
  );
  return [...named.map((pid) => `pid ${pid}`), ...commands.flat()];
}

/** Files of the demo that are still there. */
async function filesLeft(): Promise<string[]> {
  return (await readdir(temporary)).filter((name) => name.startsWith('writ-'));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The caretaker may still be at work when the demo was killed. */
async function isCleanSoon(demo: Demo): Promise<void> {
  const expires = performance.now() + 30_000;
  const look = async () => [...(await leftOver(demo)), ...(await filesLeft())];
  let left = await look();
  while (left.length > 0 && performance.now() < expires) {
    await pause(50);
    left = await look();
  }
  expect(left).toEqual([]);
}

describe('writ demo', () => {
  it('observes every fact of the main job and leaves nothing behind', { timeout: TIMEOUT_MS }, async () => {
    const demo = startDemo();

    const code = await demo.ended;

    const story = demo.output().replace(/\s+/g, ' ');
    expect(code, demo.output()).toBe(0);
    for (const line of [
      'refused held:',
      'rule implies[0] expires',
      'Run C was granted all 7 entries at once',
      'guard stale_token coordinator expired',
      'guard stale_token coordinator coordinator_unreachable',
      'Run B wrote row 7 with the same lease and token',
      '412 version_conflict: notification-policy/prod-alerts is at version 42',
      'version 42, severity critical',
      'guard ok coordinator not_covered',
      'guard ok coordinator run_stopped',
      'Verified offline, with the public key only',
      'The change was found, and the event named',
      'Nothing is left running.',
    ]) {
      expect(story).toContain(line);
    }
    expect(await leftOver(demo)).toEqual([]);
    expect(await filesLeft()).toEqual([]);
    // For people, and no terminal is there to show colours.
    expect(demo.output()).not.toContain('\x1b');
  });

  it('takes away what it started when it is interrupted while a run stands still', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const demo = startDemo();
    await demo.says('SIGSTOP to run A');

    // Twice, as npm and a terminal do.
    demo.child.kill('SIGINT');
    demo.child.kill('SIGINT');

    expect(await demo.ended).toBe(130);
    expect(await leftOver(demo)).toEqual([]);
    expect(await filesLeft()).toEqual([]);
  });

  it('is cleaned up after even when it is killed', { timeout: TIMEOUT_MS }, async () => {
    const demo = startDemo();
    await demo.says('SIGSTOP to run A');

    demo.child.kill('SIGKILL');

    expect(await demo.ended).toBe('SIGKILL');
    await isCleanSoon(demo);
  });
});
