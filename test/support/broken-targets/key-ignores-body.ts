import { Service } from './service.js';

/** Takes a used idempotency key for a repetition, whatever comes with it. */
export class KeyIgnoresBody extends Service {
  protected override fingerprint(): string {
    return 'the same';
  }
}
