import type { Decision } from '../../../src/domain/decide/decision.js';
import { type Attachment, decideAttach, decideSweep } from '../../../src/domain/decide/upkeep.js';
import type { SimReplica } from './replica.js';
import type { World } from './world.js';

/** The processes of the coordinator: they follow the log, keep house, stand still, and die. */
export class Processes {
  constructor(private readonly world: World) {}

  /** One process does what it would do next. */
  move(): void {
    const replica = this.world.draw.pick(this.world.replicas);
    // A process that was stopped goes on some time.
    if (replica?.paused && this.world.draw.chance(8)) replica.paused = false;
    if (replica === undefined || replica.paused) return;
    switch (this.world.draw.int(8)) {
      case 0:
        replica.follow();
        return;
      case 1:
        this.background(replica, decideSweep);
        return;
      case 2:
        this.keepAttached(replica);
        return;
      case 3:
        this.hangUp(replica);
        return;
      default:
        replica.step();
    }
  }

  /** What a process does by itself. */
  background(replica: SimReplica, decide: (decision: Decision) => unknown): void {
    replica.submit(this.world.command('system', decide, { answered: () => undefined, failed: () => undefined }));
  }

  private keepAttached(replica: SimReplica): void {
    const attachments: Attachment[] = [...replica.attachments].map(([leaseId, attachment]) => ({
      leaseId,
      attachment,
      attached: true,
    }));
    this.background(replica, (decision) => decideAttach(decision, attachments));
  }

  /** A client has gone, or its call was answered `waiting`: it will call again, or not. */
  private hangUp(replica: SimReplica): void {
    const [leaseId, attachment] = this.world.draw.pick([...replica.attachments]) ?? [];
    if (leaseId === undefined || attachment === undefined) return;
    replica.attachments.delete(leaseId);
    this.background(replica, (decision) => decideAttach(decision, [{ leaseId, attachment, attached: false }]));
  }

  /** A process stops or goes on, is killed, or loses its connection. */
  disturb(): void {
    const replica = this.world.draw.pick(this.world.replicas);
    if (replica === undefined) return;
    switch (this.world.draw.int(8)) {
      case 0:
      case 1:
      case 2:
        if (!replica.paused) this.world.count('pause');
        replica.paused = !replica.paused && this.world.draw.chance(70);
        return;
      case 3:
        replica.restart();
        this.world.count('restart');
        return;
      default:
        this.world.network.lose();
    }
  }
}
