import { Service } from './service.js';

/** Nobody tells the guard that there is a new holder before that one writes. */
export class GuardWithoutOpen extends Service {
  protected override async raise(): Promise<void> {}
}
