import type { FenceDecision } from '../../../src/clients/target/index.js';
import { Service, type Write } from './service.js';

/** Does not say who presents the lease, so that whoever has seen it may use it. */
export class BelievesTheLease extends Service {
  protected override ask(write: Write): Promise<FenceDecision> {
    return super.ask({ ...write, runId: '' });
  }
}
