import { Service, type Write } from './service.js';

/** The guard lets the write in, commits, and holds nothing any more when the write comes. */
export class GuardInAnotherTransaction extends Service {
  protected override async admit(_: Parameters<Service['admit']>[0], write: Write): Promise<void> {
    await this.inTransaction((client) => super.admit(client, write));
  }
}
