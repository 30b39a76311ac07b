import { MILLISECOND } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { DIGEST_VERSION } from '../engine/state-digest.js';
import { Rounds } from './rounds.js';

export interface StateCheckpointsOptions {
  readonly everyMs: number;
  /** Namespaces that are loaded. */
  readonly engines: () => readonly NamespaceEngine[];
  readonly onProblem: (message: string, error: unknown) => void;
}

/** Timers of replicas are not in step: what another one did a little less than a period ago is enough. */
const PERIOD_SHARE = 0.8;

/**
 * Lets every replica compare its live state with the others', again and again (design: the log): one of them writes the
 * digest of its own into the log, and each that has another stops. Only of logs that have moved since.
 */
export class StateCheckpoints {
  private readonly rounds: Rounds<NamespaceEngine>;

  constructor(private readonly options: StateCheckpointsOptions) {
    this.rounds = new Rounds({
      everyMs: options.everyMs,
      engines: options.engines,
      visit: (engine) => this.writeOne(engine),
      failed: ({ namespace }, error) =>
        options.onProblem(`the state of namespace ${namespace} could not be compared`, error),
    });
  }

  start(): void {
    this.rounds.start();
  }

  stop(): void {
    this.rounds.stop();
  }

  writeAll(): Promise<void> {
    return this.rounds.once();
  }

  private async writeOne(engine: NamespaceEngine): Promise<void> {
    if (engine.notReady !== null || !this.isDue(engine)) return;
    const begun = await engine.submit(
      'system',
      (decision) => {
        // Another replica may have been faster: what it wrote is known by now.
        if (!this.isDue(engine)) return null;
        decision.emit({ kind: 'checkpoint_begun' });
        return decision.state.revision;
      },
      true,
    );
    const revision = begun.value;
    const digest = revision === null ? null : ((await engine.digests?.at(revision)) ?? null);
    if (revision === null || digest === null) return;
    await engine.submit('system', (decision) =>
      decision.emit({ kind: 'checkpoint_written', revision, digestVersion: DIGEST_VERSION, digest }),
    );
  }

  private isDue(engine: NamespaceEngine): boolean {
    const { digests } = engine;
    if (digests === null || engine.head.revision <= digests.lastRevision) return false;
    return engine.estimatedNow() - digests.begunAt >= this.options.everyMs * MILLISECOND * PERIOD_SHARE;
  }
}
