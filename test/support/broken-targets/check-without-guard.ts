import { Service } from './service.js';

/** Asks the coordinator, and trusts the answer for as long as the write takes. */
export class CheckWithoutGuard extends Service {
  protected override async admit(): Promise<void> {}

  protected override async raise(): Promise<void> {}
}
