import { describe, expect, it } from 'vitest';
import { WritError } from '../../src/clients/common/errors.js';
import { type SigningKey, SigningKeyState } from '../../src/gen/writ/v1/credential_service.js';
import { cli } from '../support/cli.js';

const KEY: SigningKey = {
  keyId: 'k'.repeat(43),
  state: SigningKeyState.SIGNING_KEY_STATE_CURRENT,
  algorithm: 'ES256',
  createdAt: { seconds: 1_764_428_400n, nanos: 0 },
};

describe('writ keys', () => {
  it('lists them, or says that there are none', async () => {
    const listing = (keys: SigningKey[]) => ({ credential: { listSigningKeys: async () => ({ keys }) } });
    const { stdout, code } = await cli(['keys', 'list'], { client: listing([KEY]) });
    expect(code).toBe(0);
    expect(stdout).toContain(KEY.keyId);
    expect(stdout).toContain('current');
    expect(stdout).toContain('2025-11-29 15:00:00Z');
    expect((await cli(['keys', 'list'], { client: listing([]) })).stdout).toContain('issues no credentials');
    const { json } = await cli(['keys', 'list', '--json'], { client: listing([KEY]) });
    expect(json()).toMatchObject({ keys: [{ keyId: KEY.keyId, state: 'SIGNING_KEY_STATE_CURRENT' }] });
  });

  it('rotates with a reason; by force it says what that means', async () => {
    const asked: unknown[] = [];
    const rotateSigningKey = async (request: unknown) => {
      asked.push(request);
      return { changed: [KEY] };
    };
    const client = { credential: { rotateSigningKey } };
    expect((await cli(['keys', 'rotate'], { client })).code).toBe(2);
    expect((await cli(['keys', 'rotate', '--reason', 'due'], { client })).stdout).not.toContain('refuse');
    expect((await cli(['keys', 'rotate', '--force', '--reason', 'lost'], { client })).stdout).toContain('refuse');
    expect(asked).toEqual([
      { reason: 'due', force: false },
      { reason: 'lost', force: true },
    ]);
  });

  it('retires one; a refusal ends with 3 and says what to do', async () => {
    const refuse = async () => {
      throw new WritError('FAILED_PRECONDITION', 'This key signs. Rotate first, then retire it.');
    };
    const retire = ['keys', 'retire', KEY.keyId, '--reason', 'lost'];
    const refused = await cli(retire, { client: { credential: { retireSigningKey: refuse } } });
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('Rotate first')]);
    const again = await cli(retire, { client: { credential: { retireSigningKey: async () => ({ changed: [] }) } } });
    expect(again.stdout).toContain('retired before');
  });
});
