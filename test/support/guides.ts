import { spawn } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Guides whose commands are run as they stand there. */

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The commands of a section of a guide, block by block. */
export async function commandBlocksOf(guide: string, heading: string): Promise<string[]> {
  const text = await readFile(join(ROOT, guide), 'utf8');
  const section = text.slice(text.indexOf(`\n## ${heading}\n`)).split(/\n## /)[1] ?? '';
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, commands = '']) => commands);
}

/** The commands of a section of a guide, one after another. */
export async function commandsOf(guide: string, heading: string): Promise<string> {
  return (await commandBlocksOf(guide, heading)).join('\n');
}

/** A directory with `writ` in it, for PATH. */
export async function makeBin(directory: string): Promise<string> {
  const bin = join(directory, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'writ'), `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/dist/cli/index.js" "$@"\n`);
  await chmod(join(bin, 'writ'), 0o755);
  return bin;
}

/** Runs a script in a shell; resolves with its exit code and all that it wrote. */
export function runScript(
  script: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], { cwd, env: { ...process.env, ...env } });
    let text = '';
    for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk) => (text += String(chunk)));
    shell.on('error', reject).on('close', (code) => resolve({ code, text }));
  });
}
