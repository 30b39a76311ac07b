import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { platform } from 'node:os';
import { promisify } from 'node:util';
import { CHILD_ENV } from './child-env.js';
import { hasCode } from './errors.js';

interface ProcessFacts {
  /** When it began, in whatever form the platform tells: with the pid, it names a process for good. */
  readonly started: string;
  readonly command: readonly string[];
}

/** A zombie counts as gone: an adopted server whose new parent does not reap (a container's pid 1) stays one. */
export async function inspectProcess(pid: number): Promise<ProcessFacts | undefined> {
  return platform() === 'linux' ? inspectProc(pid) : inspectWithPs(pid);
}

/** What to write down so that `isSameProcess` recognises this process; empty where the platform does not tell. */
export async function ownStartTime(): Promise<string> {
  return (await inspectProcess(process.pid))?.started ?? '';
}

/** Whether the process that began then still runs; another one may have its pid by now. */
export async function isSameProcess(pid: number, started: unknown): Promise<boolean> {
  const found = await inspectProcess(pid);
  return found !== undefined && found.started === started;
}

/** Cheap enough to be asked often, and tolerant: what cannot be looked at counts as alive, as do zombies without /proc. */
export async function isProcessAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
  if (platform() !== 'linux') return true;
  return inspectProc(pid).then(
    (found) => found !== undefined,
    () => true,
  );
}

async function inspectProc(pid: number): Promise<ProcessFacts | undefined> {
  try {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The second field, the name in parentheses, may itself hold blanks and parentheses.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    if (/^[ZX]/.test(fields[0] ?? 'X')) return undefined;
    const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
    return { started: fields[19] ?? '', command };
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}

async function inspectWithPs(pid: number): Promise<ProcessFacts | undefined> {
  const columns = ['-o', 'stat=,lstart=,command=', '-p', String(pid)];
  const asked = await promisify(execFile)('ps', columns, { env: CHILD_ENV }).catch(() => ({ stdout: '' }));
  const [, state, started, command] = /^\s*(\S+)\s+((?:\S+\s+){4}\S+)\s+(.*)$/m.exec(asked.stdout) ?? [];
  if (state === undefined || state.startsWith('Z')) return undefined;
  return { started: started ?? '', command: (command ?? '').split(' ') };
}
