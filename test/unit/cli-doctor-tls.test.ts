import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestAuthority, testAuthority } from '../support/certificates.js';
import { doctor } from '../support/doctor.js';

// What `writ doctor` finds about TLS, by the same settings that `writ serve` takes.

let directory: string;
let authority: TestAuthority;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-doctor-'));
  authority = await testAuthority(directory);
  await authority.issue('long', { use: 'server', days: 90 });
  await authority.issue('soon', { use: 'server', days: 3 });
  await authority.issue('over', { use: 'server', days: -1, beginsInDays: -2 });
  await writeFile(join(directory, 'no-certificate.pem'), 'nothing of that kind');
});

afterAll(() => rm(directory, { recursive: true, force: true }));

const file = (name: string): string => join(directory, `${name}.pem`);

/** Names of files: where they lie is known only when they are made. */
const pair = (name: string, key = name) => ({ WRIT_TLS_CERT_FILE: name, WRIT_TLS_KEY_FILE: `${key}-key` });

it.each([
  ['a good pair', pair('long'), 'ok', /long\.pem, until \d{4}-/, 0],
  ['a pair with an authority of clients', { ...pair('long'), WRIT_TLS_CLIENT_CA_FILE: 'ca' }, 'ok', /until/, 0],
  ['a certificate that ends soon', pair('soon'), 'warning', /soon\.pem expires in 2 days/, 0],
  ['a certificate that has ended', pair('over'), 'problem', /over\.pem has expired/, 7],
  ['a key of another certificate', pair('long', 'soon'), 'problem', /do not fit together/, 7],
  ['no certificate in its file', pair('no-certificate', 'long'), 'problem', /holds no certificate/, 7],
  ['a file that is missing', pair('nowhere', 'long'), 'problem', /nowhere\.pem cannot be read/, 7],
  [
    'no authority in its file',
    { ...pair('long'), WRIT_TLS_CLIENT_CA_FILE: 'no-certificate' },
    'problem',
    /WRIT_TLS_CLIENT_CA_FILE: .* holds no certificate/,
    7,
  ],
  ['no TLS, on loopback', {}, 'skipped', /both ports listen on loopback/, 0],
  [
    'no TLS, and reachable from elsewhere',
    { WRIT_HOST: '0.0.0.0', WRIT_ALLOW_INSECURE: 'beyond-loopback' },
    'warning',
    /tokens travel unencrypted/,
    0,
  ],
] as const)('%s', async (_, given, verdict, text, code) => {
  const settings = Object.entries(given as Record<string, string>).map(([name, value]) =>
    name.endsWith('_FILE') ? [name, file(value)] : [name, value],
  );
  const found = await doctor(directory, Object.fromEntries(settings) as Record<string, string>);
  expect(found.of('TLS')).toEqual([{ what: 'TLS', verdict, text: expect.stringMatching(text) }]);
  expect(found.code).toBe(code);
});

it('a key without its certificate is a wrong setting', async () => {
  const found = await doctor(directory, { WRIT_TLS_KEY_FILE: file('long-key') });
  expect(found.of('settings')).toEqual([
    { what: 'settings', verdict: 'problem', text: 'WRIT_TLS_CERT_FILE: required with WRIT_TLS_KEY_FILE' },
  ]);
  expect(found.code).toBe(7);
});
