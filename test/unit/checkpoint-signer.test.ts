import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { fileCheckpointSigner } from '../../src/services/checkpoint-signer.js';
import { makeTestDirectory } from '../support/global-setup.js';

it('makes the key once', async () => {
  const path = join(await makeTestDirectory('checkpoint-key'), 'key.pem');
  expect(fileCheckpointSigner(path).keyId).toBe(fileCheckpointSigner(path).keyId);
});

it.each([
  ['is no key', 'not a key, and perhaps a secret'],
  ['is a key of another kind', '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VuBCIEIA==\n-----END PRIVATE KEY-----\n'],
])('what %s is a wrong setting, told by its name', async (_, content) => {
  const path = join(await makeTestDirectory('checkpoint-key'), 'key.pem');
  await writeFile(path, content);
  const message = expect.stringMatching(/WRIT_CHECKPOINT_KEY_FILE.*key\.pem must hold an Ed25519 private key/);
  expect(() => fileCheckpointSigner(path)).toThrow(expect.objectContaining({ exitCode: 2, message }));
});

it('a path that cannot be is a wrong setting', async () => {
  const path = join(await makeTestDirectory('checkpoint-key'), 'file');
  await writeFile(path, '');
  expect(() => fileCheckpointSigner(join(path, 'key.pem'))).toThrow(expect.objectContaining({ exitCode: 2 }));
});
