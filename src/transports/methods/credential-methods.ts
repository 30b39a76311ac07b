import type { SigningKey, SigningKeyState } from '../../domain/signing-keys.js';
import * as wire from '../../gen/writ/v1/credential_service.js';
import { RequestReader, toDuration, toOptionalTimestamp, toTimestamp } from '../messages/convert.js';
import { fromConfirmation, toAudienceOutcome } from '../messages/credential-messages.js';
import type { RefusalViews } from '../messages/views.js';
import type { UnaryMethods } from './method.js';

/** The methods of CredentialService. */
export function credentialMethods(views: RefusalViews): UnaryMethods<wire.CredentialServiceServer> {
  return {
    issueCredential: async (api, call, request) => {
      const { runId, leaseId, audience, requestId } = request;
      const confirmation = fromConfirmation(request.confirmation, 'confirmation');
      const input = { runId, leaseId: leaseId ?? null, audience, confirmation, requestId };
      const { value, revision } = await api.issueCredential(call.within(request.namespace), input);
      return { outcome: toAudienceOutcome(value, call.principal, views), logRevision: BigInt(revision) };
    },
    introspectCredential: async (api, call, request) => {
      const { value, revision } = await api.introspectCredential(call, { token: request.token });
      return { active: value.active, claims: value.active ? value.claims : undefined, logRevision: BigInt(revision) };
    },
    revokeCredential: async (api, call, request) => {
      const input = { subject: fromSubject(request.subject), reason: request.reason };
      const { value, revision } = await api.revokeCredential(call.within(request.namespace), input);
      return { effectiveAt: toTimestamp(value.effectiveAt), logRevision: BigInt(revision) };
    },
    getKeys: async (api) => {
      const { jwks, maxAge, issuer } = await api.getKeys();
      return { jwks, maxAge: toDuration(maxAge), issuer };
    },
    listSigningKeys: async (api) => ({
      keys: (await api.listSigningKeys()).map(toSigningKey),
    }),
    rotateSigningKey: async (api, call, { reason, force }) => ({
      changed: (await api.rotateSigningKey(call, { reason, force })).map(toSigningKey),
    }),
    retireSigningKey: async (api, call, { keyId, reason }) => ({
      changed: (await api.retireSigningKey(call, { keyId, reason })).map(toSigningKey),
    }),
  };
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
