import type { FenceDecision } from '../../../src/clients/target/index.js';
import { Service, type Write } from './service.js';

/** Takes no answer for a yes. */
export class FailsOpen extends Service {
  protected override async ask(write: Write): Promise<FenceDecision> {
    const decision = await super.ask(write);
    return decision.error === undefined ? decision : { ...decision, allowed: true };
  }
}
