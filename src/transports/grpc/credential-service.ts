import type { Confirmation } from '../../domain/credential.js';
import type { SigningKey, SigningKeyState } from '../../domain/signing-keys.js';
import * as wire from '../../gen/writ/v1/credential_service.js';
import type * as types from '../../gen/writ/v1/types.js';
import type { AudienceCredential, IssuedCredential } from '../../services/api.js';
import { RequestReader, toDuration, toOptionalTimestamp, toTimestamp } from './convert.js';
import type { Call, CallHandler } from './handler.js';
import type { RefusalViews } from './views.js';

/** CredentialService over gRPC. */
export function credentialService(handler: CallHandler, views: RefusalViews): wire.CredentialServiceServer {
  return {
    issueCredential: handler.unary('CredentialService/IssueCredential', async (api, call, request) => {
      const { runId, leaseId, audience, requestId } = request;
      const confirmation = fromConfirmation(request.confirmation, 'confirmation');
      const input = { runId, leaseId: leaseId ?? null, audience, confirmation, requestId };
      const { value, revision } = await api.issueCredential(call.within(request.namespace), input);
      return { outcome: outcomeOf(value, call, views), logRevision: BigInt(revision) };
    }),
    introspectCredential: handler.unary('CredentialService/IntrospectCredential', async (api, call, request) => {
      const { value, revision } = await api.introspectCredential(call, { token: request.token });
      return { active: value.active, claims: value.active ? value.claims : undefined, logRevision: BigInt(revision) };
    }),
    revokeCredential: handler.unary('CredentialService/RevokeCredential', async (api, call, request) => {
      const input = { subject: fromSubject(request.subject), reason: request.reason };
      const { value, revision } = await api.revokeCredential(call.within(request.namespace), input);
      return { effectiveAt: toTimestamp(value.effectiveAt), logRevision: BigInt(revision) };
    }),
    getKeys: handler.unary('CredentialService/GetKeys', async (api) => {
      const { jwks, maxAge, issuer } = await api.getKeys();
      return { jwks, maxAge: toDuration(maxAge), issuer };
    }),
    listSigningKeys: handler.unary('CredentialService/ListSigningKeys', async (api) => ({
      keys: (await api.listSigningKeys()).map(toSigningKey),
    })),
    rotateSigningKey: handler.unary('CredentialService/RotateSigningKey', async (api, call, { reason, force }) => ({
      changed: (await api.rotateSigningKey(call, { reason, force })).map(toSigningKey),
    })),
    retireSigningKey: handler.unary('CredentialService/RetireSigningKey', async (api, call, { keyId, reason }) => ({
      changed: (await api.retireSigningKey(call, { keyId, reason })).map(toSigningKey),
    })),
  };
}

/** One of the two it can be, as both answers that carry it say it. */
function outcomeOf({ credential, refusal }: AudienceCredential, call: Call, views: RefusalViews) {
  if (credential !== null) return { $case: 'credential' as const, value: toCredential(credential) };
  if (refusal === null) throw new Error('an audience without outcome');
  return { $case: 'refusal' as const, value: views.refusal(refusal, call.principal) };
}

/** Of an acquire. */
export function toAudienceCredential(
  outcome: AudienceCredential,
  call: Call,
  views: RefusalViews,
): types.AudienceCredential {
  return { audience: outcome.audience, outcome: outcomeOf(outcome, call, views) };
}

function toCredential(credential: IssuedCredential): types.Credential {
  const { token, jti, audience, tokenType, boundTo } = credential;
  return {
    token,
    jti,
    audience,
    expiresAt: toTimestamp(credential.expiresAt),
    expiresIn: toDuration(Math.max(0, credential.expiresIn)),
    tokenType,
    boundTo: boundTo === null ? undefined : toConfirmation(boundTo),
  };
}

function toConfirmation({ kind, thumbprint }: Confirmation): types.Confirmation {
  return { key: { $case: kind === 'jkt' ? 'jkt' : 'x5tS256', value: thumbprint } };
}

/** Null when absent; one without a key is a mistake, not the same as none. */
export function fromConfirmation(confirmation: types.Confirmation | undefined, field: string): Confirmation | null {
  if (confirmation === undefined) return null;
  const { key } = confirmation;
  if (key === undefined) {
    const reader = new RequestReader();
    reader.wrong(field, 'give x5t_s256 or jkt');
    reader.done();
    throw new Error('unreachable');
  }
  return { kind: key.$case === 'jkt' ? 'jkt' : 'x5t#S256', thumbprint: key.value };
}

function fromSubject(subject: wire.RevokeCredentialRequest['subject']) {
  switch (subject?.$case) {
    case 'jti':
      return { kind: 'jti' as const, jti: subject.value };
    case 'leaseId':
      return { kind: 'lease' as const, leaseId: subject.value };
    case 'runId':
      return { kind: 'run' as const, runId: subject.value };
    case undefined: {
      const reader = new RequestReader();
      reader.wrong('subject', 'one of jti, lease_id and run_id is required');
      reader.done();
      throw new Error('unreachable');
    }
  }
}

const STATE_TO_WIRE: Readonly<Record<SigningKeyState, wire.SigningKeyState>> = {
  next: wire.SigningKeyState.SIGNING_KEY_STATE_NEXT,
  current: wire.SigningKeyState.SIGNING_KEY_STATE_CURRENT,
  previous: wire.SigningKeyState.SIGNING_KEY_STATE_PREVIOUS,
  retired: wire.SigningKeyState.SIGNING_KEY_STATE_RETIRED,
};

function toSigningKey(key: SigningKey): wire.SigningKey {
  return {
    keyId: key.keyId,
    state: STATE_TO_WIRE[key.state],
    algorithm: 'ES256',
    createdAt: toTimestamp(key.createdAt),
    activatedAt: toOptionalTimestamp(key.activatedAt),
    replacedAt: toOptionalTimestamp(key.replacedAt),
    retiredAt: toOptionalTimestamp(key.retiredAt),
  };
}
