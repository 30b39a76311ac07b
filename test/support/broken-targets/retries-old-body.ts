import { Refused, Service, type Write } from './service.js';

/** On a version conflict it sends the old body again, from the version that is there now. */
export class RetriesOldBody extends Service {
  protected override async change(client: Parameters<Service['change']>[0], write: Write): Promise<string> {
    try {
      return await super.change(client, write);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 412) throw error;
      return super.change(client, { ...write, observed: await this.currentVersion(client, write) });
    }
  }
}
