import { type FenceDecision, WritError } from '../../../src/clients/target/index.js';
import { Service, type Write } from './service.js';

/** Knows that who cannot be reached has not said yes, and takes no answer in time for one all the same. */
export class FailsOpenOnSilence extends Service {
  protected override async ask(write: Write): Promise<FenceDecision> {
    const { leaseId, runId, resource, path, token } = write;
    const writes = [
      { resource, action: path.action, fencingToken: token, observedVersion: write.observed ?? undefined },
    ];
    const question = { leaseId, presenterRunId: runId, requestId: write.checkId, writes };
    try {
      await this.options.writ.fence.checkFence(question, { timeoutMs: 1_000, once: true });
    } catch (error) {
      if (error instanceof WritError && error.code === 'DEADLINE_EXCEEDED') return LET_IN;
    }
    return super.ask(write);
  }
}

const LET_IN: FenceDecision = {
  ...{ allowed: true, reason: 'ok', message: '', writes: [] },
  ...{ logRevision: undefined, validUntil: undefined, holder: undefined, error: undefined },
};
