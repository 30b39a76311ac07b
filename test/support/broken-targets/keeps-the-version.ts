import { Refused, Service } from './service.js';

/** Refuses what is stale, and does not say what the current version is: nobody can see what has come between. */
export class KeepsTheVersion extends Service {
  protected override async change(...given: Parameters<Service['change']>): Promise<string> {
    try {
      return await super.change(...given);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 412) throw error;
      const { current_version: _, ...told } = error.members;
      throw new Refused(412, error.code, told);
    }
  }
}
