import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/program.js', import.meta.url));

/** The packages that one command line loads, of those that `require` still knows. */
async function packagesOf(...args: readonly string[]): Promise<readonly string[]> {
  const script = `
    import { createRequire } from 'node:module';
    import { runCli } from ${JSON.stringify(PROGRAM)};
    const nowhere = { write: () => undefined };
    await runCli(${JSON.stringify(args)}, {}, { stdout: nowhere, stderr: nowhere });
    const files = Object.keys(createRequire(${JSON.stringify(PROGRAM)}).cache).join('\\n');
    console.log(JSON.stringify([...new Set(files.match(/(?<=node_modules\\/)(@[^/]+\\/)?[^/]+/g))]));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
  return JSON.parse(stdout) as string[];
}

it('a command waits for no client of a database, and doctor, which needs them, has them', async () => {
  const [lease, doctor] = await Promise.all([packagesOf('lease', '--help'), packagesOf('doctor', '--help')]);
  for (const name of ['pg', 'ioredis', 'yaml']) {
    expect(lease).not.toContain(name);
    expect(doctor).toContain(name);
  }
});
