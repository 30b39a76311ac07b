import { calculateThumbprint } from 'dpop';
import type { Credential } from '../../gen/writ/v1/types.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import { durationMs } from '../common/time.js';
import { elapsedMs } from './clock.js';
import { CredentialNotIssuedError } from './errors.js';
import type { DpopKeyPair } from './targets.js';

/** For which lease a credential stands, and who issues it. */
export interface CredentialSource {
  readonly client: WritClient;
  readonly namespace: string;
  readonly runId: string;
  readonly leaseId: string;
}

/** A credential, and until when it is good here. */
export interface HeldCredential {
  readonly token: string;
  /** `Bearer` or `DPoP`. */
  readonly scheme: string;
  /** `elapsedMs()` at which a new one should be had: two thirds of its life. */
  readonly renewAt: number;
  /** `elapsedMs()` at which it ends, counted from the moment it was asked for. */
  readonly endsAt: number;
}

/** One that lives no longer than this is not sent any more: it would end on the way. */
const MIN_LEFT_MS = 1_000;
/** A renewal that failed is not tried again at every request. */
const RETRY_AFTER_MS = 1_000;

/**
 * The credential of a lease for one target (C9): issued when it is first needed, a new one from two thirds of its life
 * on. However many ask, one call is under way. It never extends the lease: the lease is renewed by itself, and each
 * credential ends before it.
 */
export class CredentialKeeper {
  private held: HeldCredential | undefined;
  private issuing: Promise<HeldCredential> | undefined;
  private triedAt = Number.NEGATIVE_INFINITY;
  private thumbprint: Promise<string> | undefined;

  constructor(
    private readonly source: CredentialSource,
    private readonly audience: string,
    private readonly key?: DpopKeyPair,
  ) {}

  /** One that is good for another second at least. Throws a CredentialNotIssuedError, or a WritError. */
  async get(): Promise<HeldCredential> {
    const { held } = this;
    const now = elapsedMs();
    if (held === undefined || held.endsAt - now < MIN_LEFT_MS) return this.issue();
    // What is held is good; a failure is told when it is not any more.
    if (held.renewAt <= now && now - this.triedAt >= RETRY_AFTER_MS) this.issue().catch(() => undefined);
    return held;
  }

  /** What it held says too much or too little: the lease covers something else by now. */
  forget(): void {
    this.held = undefined;
    this.issuing = undefined;
  }

  /** A new one now. */
  issue(): Promise<HeldCredential> {
    if (this.issuing !== undefined) return this.issuing;
    const issuing = this.ask().then((issued) => {
      if (this.issuing === issuing) this.held = issued;
      return issued;
    });
    this.issuing = issuing;
    const done = (): void => {
      if (this.issuing === issuing) this.issuing = undefined;
    };
    issuing.then(done, done);
    return issuing;
  }

  private async ask(): Promise<HeldCredential> {
    const { client, namespace, runId, leaseId } = this.source;
    const jkt = await this.keyThumbprint();
    const sentAt = elapsedMs();
    this.triedAt = sentAt;
    const { outcome } = await client.credential.issueCredential({
      namespace,
      runId,
      leaseId,
      audience: this.audience,
      ...(jkt === undefined ? {} : { confirmation: { key: { $case: 'jkt' as const, value: jkt } } }),
    });
    if (outcome === undefined) throw new WritError('INTERNAL', 'the answer to IssueCredential has no outcome');
    if (outcome.$case === 'refusal') throw new CredentialNotIssuedError(this.audience, outcome.value);
    return holding(outcome.value, sentAt);
  }

  private keyThumbprint(): Promise<string | undefined> {
    if (this.key === undefined) return Promise.resolve(undefined);
    this.thumbprint ??= calculateThumbprint(this.key.publicKey);
    return this.thumbprint;
  }
}

function holding({ token, tokenType, expiresIn }: Credential, sentAt: number): HeldCredential {
  const lifeMs = durationMs(expiresIn) ?? 0;
  return { token, scheme: tokenType, renewAt: sentAt + (lifeMs * 2) / 3, endsAt: sentAt + lifeMs };
}
