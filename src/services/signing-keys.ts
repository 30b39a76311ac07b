import { KEYS_MAX_AGE, retireKey, rotate, type SigningKey } from '../domain/signing-keys.js';
import type { CallContext, PublishedKeys } from './api.js';
import type { Deps } from './deps.js';
import { FieldChecks } from './fields.js';

/** GetKeys, and /.well-known/jwks.json. */
export async function getKeys(deps: Deps): Promise<PublishedKeys> {
  const keys = await deps.credentials.ring.published();
  const jwks = `{"keys":[${keys.map(({ publicJwk }) => publicJwk).join(',')}]}`;
  return { jwks, maxAge: KEYS_MAX_AGE, issuer: deps.credentials.issuer };
}

/** ListSigningKeys: what is published first. */
export async function listSigningKeys(deps: Deps): Promise<readonly SigningKey[]> {
  const { keys } = await deps.credentials.ring.all();
  const isRetired = ({ state }: SigningKey): number => (state === 'retired' ? 1 : 0);
  return keys.toSorted((a, b) => isRetired(a) - isRetired(b) || a.createdAt - b.createdAt);
}

/** RotateSigningKey. */
export async function rotateSigningKey(
  deps: Deps,
  context: CallContext,
  input: { readonly reason: string; readonly force: boolean },
): Promise<readonly SigningKey[]> {
  const checks = new FieldChecks();
  checks.text('reason', input.reason, 1_024, true);
  checks.done();
  // By force is how keys are made that this replica can open.
  if (!input.force) await deps.credentials.ring.signer();
  return deps.credentials.ring.change(context.principal.name, input.reason, (keys, now, fresh) =>
    rotate(keys, now, input.force, fresh),
  );
}

/** RetireSigningKey. */
export async function retireSigningKey(
  deps: Deps,
  context: CallContext,
  input: { readonly keyId: string; readonly reason: string },
): Promise<readonly SigningKey[]> {
  const checks = new FieldChecks();
  checks.thumbprint('key_id', input.keyId);
  checks.text('reason', input.reason, 1_024, true);
  checks.done();
  await deps.credentials.ring.signer();
  return deps.credentials.ring.change(context.principal.name, input.reason, (keys, now, fresh) =>
    retireKey(keys, now, input.keyId, fresh),
  );
}
