import { reportWrite } from '../../../src/clients/target/index.js';
import { Service, type Write } from './service.js';

/** With everything right too: for tracked actions, of which it reports what became of each write that was let in. */
export class ReportsWrites extends Service {
  protected override async write(write: Write): Promise<string> {
    try {
      const version = await super.write(write);
      await this.report(write, 'succeeded');
      return version;
    } catch (error) {
      await this.report(write, 'failed');
      throw error;
    }
  }

  protected override async raise(write: Write): Promise<void> {
    await super.raise(write);
    await this.report(write, 'succeeded');
  }

  private async report({ leaseId, checkId, resource, path }: Write, result: 'succeeded' | 'failed'): Promise<void> {
    const writes = [{ resource, action: path.action, result }];
    // Of a write that was not let in there is nothing to report.
    await reportWrite(this.options.writ, { leaseId, requestId: checkId, writes }).catch(() => undefined);
  }
}
