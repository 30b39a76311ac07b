import type { Principal } from '../../auth/principal.js';
import type { Confirmation } from '../../domain/credential.js';
import type * as types from '../../gen/writ/v1/types.js';
import type { AudienceCredential, IssuedCredential } from '../../services/api.js';
import { RequestReader, toDuration, toTimestamp } from './convert.js';
import type { RefusalViews } from './views.js';

/** Credentials, and the keys that they are bound to. */

/** One of the two it can be, as both answers that carry it say it. */
export function toAudienceOutcome({ credential, refusal }: AudienceCredential, viewer: Principal, views: RefusalViews) {
  if (credential !== null) return { $case: 'credential' as const, value: toCredential(credential) };
  if (refusal === null) throw new Error('an audience without outcome');
  return { $case: 'refusal' as const, value: views.refusal(refusal, viewer) };
}

/** Of an acquire. */
export function toAudienceCredential(
  outcome: AudienceCredential,
  viewer: Principal,
  views: RefusalViews,
): types.AudienceCredential {
  return { audience: outcome.audience, outcome: toAudienceOutcome(outcome, viewer, views) };
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
