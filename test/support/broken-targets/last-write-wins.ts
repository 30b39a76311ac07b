import { Refused, Service, type Write, type WritePath } from './service.js';

/** Takes note of the version, and looks at none: who writes last has written. */
export class LastWriteWins extends Service {
  protected override precondition(ifMatch: string | undefined, path: WritePath): string | null {
    try {
      return super.precondition(ifMatch, path);
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
  }

  protected override change(client: Parameters<Service['change']>[0], write: Write): Promise<string> {
    return super.change(client, { ...write, observed: null });
  }
}
