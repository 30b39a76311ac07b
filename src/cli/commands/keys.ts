import type { Command } from 'commander';
import { protoJson } from '../../contract/proto-json.js';
import {
  ListSigningKeysResponse,
  RetireSigningKeyResponse,
  RotateSigningKeyResponse,
  type SigningKey,
  SigningKeyState,
} from '../../gen/writ/v1/credential_service.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { when } from '../show.js';

export function registerKeys(program: Command, cli: Cli): void {
  const keys = program.command('keys').description('the keys that sign credentials');

  const list = keys
    .command('list')
    .description('list the signing keys: what is published first, then what has retired');
  action(list, cli, async ({ out, client }) => {
    const answer = await (await client('operator')).credential.listSigningKeys({});
    out.result(
      () => protoJson(ListSigningKeysResponse, answer),
      () => {
        if (answer.keys.length === 0) out.line('There are none: this coordinator issues no credentials.');
        else showKeys(out, answer.keys);
      },
    );
    return EXIT.ok;
  });

  const rotate = keys
    .command('rotate')
    .description('let the next key sign now instead of at its time')
    .requiredOption('--reason <text>', 'why, for the log')
    .option('--force', 'make both keys anew and sign with one at once: for keys that somebody else may have');
  action<{ reason: string; force?: boolean }>(rotate, cli, async ({ out, options, client }) => {
    const { reason, force = false } = options;
    const answer = await (await client('operator')).credential.rotateSigningKey({ reason, force });
    out.result(
      () => protoJson(RotateSigningKeyResponse, answer),
      () => {
        showKeys(out, answer.changed);
        if (force) out.line('Verifiers that keep the keys refuse new credentials until they fetch them again.');
      },
    );
    return EXIT.ok;
  });

  const retire = keys
    .command('retire')
    .argument('<key-id>', 'its name, as `writ keys list` shows it')
    .description('withdraw a key that does not sign: what it signed is refused')
    .requiredOption('--reason <text>', 'why, for the log');
  action<{ reason: string }>(retire, cli, async ({ out, options, args: [keyId = ''], client }) => {
    const { reason } = options;
    const answer = await (await client('operator')).credential.retireSigningKey({ keyId, reason });
    out.result(
      () => protoJson(RetireSigningKeyResponse, answer),
      () => {
        if (answer.changed.length === 0) out.line('It had retired before.');
        else showKeys(out, answer.changed);
      },
    );
    return EXIT.ok;
  });
}

function showKeys(out: Output, keys: readonly SigningKey[]): void {
  out.table(
    ['KEY', 'STATE', 'PUBLISHED', 'SIGNS SINCE', 'REPLACED', 'RETIRED'],
    keys.map((key) => [
      key.keyId,
      SigningKeyState[key.state].replace('SIGNING_KEY_STATE_', '').toLowerCase(),
      when(key.createdAt),
      when(key.activatedAt),
      when(key.replacedAt),
      when(key.retiredAt),
    ]),
  );
}
