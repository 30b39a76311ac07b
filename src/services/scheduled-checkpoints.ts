import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { Checkpoint } from './api.js';
import type { CheckpointSigner } from './checkpoint-signer.js';
import { Rounds } from './rounds.js';

type Engine = Pick<NamespaceEngine, 'namespace' | 'head' | 'notReady' | 'read' | 'store'>;

export interface ScheduledCheckpointsOptions {
  readonly everyMs: number;
  /** Namespaces that are loaded. */
  readonly engines: () => readonly Engine[];
  readonly signer: CheckpointSigner;
  readonly write: (checkpoint: Checkpoint) => void;
  /** Where `write` sends it, for a person. */
  readonly sentTo: string;
  readonly onProblem: (message: string, error: unknown) => void;
}

/**
 * Signs, again and again, how far each log goes and what it hashes to (A2), so that it can be sent where nobody who can
 * write to the database can reach it. Only of heads that the database confirms, and only when they have moved. Each
 * replica does it for itself: none depends on another. That it was sent is noted, so that whoever keeps them can see which
 * there should be; sent it is first.
 */
export class ScheduledCheckpoints {
  private readonly written = new Map<string, string>();
  private readonly rounds: Rounds<Engine>;

  constructor(private readonly options: ScheduledCheckpointsOptions) {
    this.rounds = new Rounds({
      everyMs: options.everyMs,
      engines: options.engines,
      visit: (engine) => this.writeOne(engine),
      failed: ({ namespace }, error) =>
        options.onProblem(`the checkpoint of namespace ${namespace} could not be made, or not be noted`, error),
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

  private async writeOne(engine: Engine): Promise<void> {
    if (engine.notReady !== null) return;
    const { namespace } = engine;
    const { value: head, now } = await engine.read(() => engine.head);
    if (this.written.get(namespace) === head.hash) return;
    const { signer, write, sentTo } = this.options;
    const checkpoint = signer.sign(namespace, head.revision, head.hash, now);
    write(checkpoint);
    this.written.set(namespace, head.hash);
    await engine.store.keepCheckpoint({ ...checkpoint, sentTo });
  }
}

/** As `writ audit checkpoint --json` prints it, so that `writ audit verify --checkpoint` takes the line as it is. */
export function checkpointJson(checkpoint: Checkpoint): object {
  const { namespace, revision, hash, time, signature, keyId, publicKeyPem } = checkpoint;
  const seconds = new Date(Math.floor(time / 1_000)).toISOString().slice(0, 19);
  return {
    namespace,
    revision: String(revision),
    hash: Buffer.from(hash, 'hex').toString('base64'),
    time: `${seconds}.${String(time % 1_000_000).padStart(6, '0')}Z`,
    signature: Buffer.from(signature).toString('base64'),
    keyId,
    publicKey: publicKeyPem,
  };
}
