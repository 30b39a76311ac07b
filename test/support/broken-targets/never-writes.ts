import { Service } from './service.js';

/** Every write is a fault of its own, whoever can be asked. */
export class NeverWrites extends Service {
  protected override async write(): Promise<string> {
    throw new Error('a fault of the service');
  }
}
