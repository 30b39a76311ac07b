import {
  type Credential,
  checkFence,
  createCredentialVerifier,
  type FenceDecision,
} from '../../../src/clients/target/index.js';
import { ALLOWED } from './guard-without-check.js';
import { Refused, Service, type ServiceOptions, type Write } from './service.js';

/** With everything right too: runs present credentials, and nothing else. */
export class KnowsCredentials extends Service {
  private readonly verifier;

  constructor(options: ServiceOptions) {
    super(options);
    const issuer = options.issuer ?? '';
    const keys = new URL('/.well-known/jwks.json', issuer);
    this.verifier = createCredentialVerifier({ issuer, audience: 'target', keys });
  }

  protected override async identified(authorization: string | undefined, resource: string, action: string) {
    const [, token = ''] = /^Bearer (\S+)$/.exec(authorization ?? '') ?? [];
    const credential = await this.verifier.verifyCredential(token).catch((): Credential => {
      throw new Refused(401, 'invalid_token');
    });
    const answer = credential.covers({ resource, action });
    if (!answer.allowed) throw new Refused(403, answer.reason);
    return { runId: credential.runId, leaseId: token, token: answer.fencingToken };
  }

  protected override ask(write: Write): Promise<FenceDecision> {
    const { leaseId: credential, requestId, resource, path, observed } = write;
    const version = observed === null ? {} : { observedVersion: observed };
    return checkFence(this.options.writ, {
      credential,
      requestId,
      writes: [{ resource, action: path.action, ...version }],
    });
  }
}

/** For kinds with `validation: local`: a credential that is genuine is believed until it ends. */
export class BelievesCredentials extends KnowsCredentials {
  protected override async ask(): Promise<FenceDecision> {
    return ALLOWED;
  }
}
