import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import type { Cli } from '../../src/cli/cli.js';
import { EXIT } from '../../src/cli/exit-codes.js';
import { Output } from '../../src/cli/output.js';
import { buildProgram } from '../../src/cli/program.js';
import { cli } from '../support/cli.js';

const DOCUMENT = fileURLToPath(new URL('../../docs/cli.md', import.meta.url));
const BEGINNING = '<!-- From here on generated from the commands: npx vitest run test/unit/cli-docs.test.ts -u -->';

function program(): Promise<Command> {
  const nowhere = { write: () => undefined };
  return buildProgram({ out: new Output(nowhere, nowhere, true) } as unknown as Cli, '0');
}

/** Every command that can be called, in the order of the help. */
function leaves(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
}

function reference(command: Command): string {
  const help = command.createHelp();
  const path = [...ancestry(command)].map((one) => one.name()).join(' ');
  const lines = [`### ${path}`, '', `${command.description()}.`, '', '```', `${path} ${command.usage()}`, '```', ''];
  const terms = [
    ...help
      .visibleArguments(command)
      .map((one) => `| \`${help.argumentTerm(one)}\` | ${cell(help.argumentDescription(one))} |`),
    ...help
      .visibleOptions(command)
      .filter((one) => one.long !== '--help')
      .map((one) => `| \`${help.optionTerm(one)}\` | ${cell(help.optionDescription(one))} |`),
  ];
  if (terms.length > 0) lines.push('| Argument or option | |', '| --- | --- |', ...terms, '');
  return lines.join('\n');
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

function ancestry(command: Command): Command[] {
  return command.parent === null ? [command] : [...ancestry(command.parent), command];
}

describe('docs/cli.md', () => {
  it('has every command as it is', async () => {
    const [beginning = ''] = (await readFile(DOCUMENT, 'utf8')).split(BEGINNING);
    const generated = leaves(await program())
      .map(reference)
      .join('\n');
    await expect(`${beginning}${BEGINNING}\n\n${generated}`).toMatchFileSnapshot(DOCUMENT);
  });

  it('has every exit code', async () => {
    const text = await readFile(DOCUMENT, 'utf8');
    for (const code of Object.values(EXIT)) expect(text).toMatch(new RegExp(`^\\| ${code} \\|`, 'm'));
  });
});

describe('help', () => {
  it('says of every command and option what it is for', async () => {
    for (const command of leaves(await program())) {
      expect(command.description(), command.name()).not.toBe('');
      for (const option of command.options) expect(option.description, `${command.name()} ${option.long}`).not.toBe('');
    }
  });

  it('has no option of a command that hides one of all commands', async () => {
    const globals = (await program()).options.map((option) => option.long);
    for (const command of leaves(await program())) {
      for (const option of command.options)
        expect(globals, `${command.name()} ${option.long}`).not.toContain(option.long);
    }
  });
});

describe('completion', () => {
  it.each(['bash', 'zsh', 'fish'])('names every command, for %s', async (shell) => {
    const { code, stdout } = await cli(['completion', shell]);
    expect(code).toBe(0);
    for (const command of leaves(await program())) expect(stdout).toContain(command.name());
  });

  it('works in bash', async () => {
    const { stdout } = await cli(['completion', 'bash']);
    const complete = (...words: string[]) => {
      const script = `${stdout}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _writ; echo "\${COMPREPLY[@]}"`;
      return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split(/\s+/);
    };
    expect(complete('writ', 'ex')).toEqual(['exec']);
    expect(complete('writ', '--json', 'lease', 're')).toEqual(['renew', 'release', 'revoke']);
    expect(complete('writ', 'map', 'apply', '--on')).toEqual(['--on-live-conflict']);
    expect(complete('writ', 'exec', '--resource', 'x', '--', 'bas')).toContain('bash');
  });
});
