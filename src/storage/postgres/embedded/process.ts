import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { platform } from 'node:os';
import { promisify } from 'node:util';
import { CHILD_ENV } from './child-env.js';
import { hasCode } from './errors.js';

/** Of the kernel's flags of a process (the ninth field of /proc/PID/stat). */
const PF_EXITING = 0x4;

interface ProcessFacts {
  /** When it began, in whatever form the platform tells: with the pid, it names a process for good. */
  readonly started: string;
  readonly command: readonly string[];
  /** It is on its way out: it does nothing any more, has lost its command, and still holds what it held. */
  readonly exiting: boolean;
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
    // The command first: one that is lost already is followed by a state that says so.
    const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
    const line = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The second field, the name in parentheses, may itself hold blanks and parentheses.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    if (/^[ZX]/.test(fields[0] ?? 'X')) return undefined;
    return { started: fields[19] ?? '', command, exiting: (Number(fields[6]) & PF_EXITING) !== 0 };
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
  return { started: started ?? '', command: (command ?? '').split(' '), exiting: state.includes('E') };
}
