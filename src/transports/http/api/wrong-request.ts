import { Fault, type Violation } from '../../../domain/fault.js';

/** A request that could not be read: what is wrong, by the names that its caller used. */
export class WrongRequest extends Fault {
  constructor(violations: readonly Violation[]) {
    const text = violations.map(({ field, description }) => `${field}: ${description}`).join('; ');
    super('invalid_argument', 'INVALID_ARGUMENT', text, { violations });
  }
}
