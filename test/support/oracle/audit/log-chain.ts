import type { Micros } from '../../../../src/domain/time.js';
import type { EventRecord } from '../../../../src/storage/store.js';
import { promise } from '../violation.js';

/** P7: no gap, no other history, no way back in time. */
export class LogChain {
  private revision = 0;
  private time: Micros = 0;
  private hash: string;

  constructor(
    genesisHash: string,
    private readonly hashOf: (record: EventRecord) => string,
    private readonly maxClockSkew: Micros,
  ) {
    this.hash = genesisHash;
  }

  continues(record: EventRecord, databaseNow: Micros): void {
    promise(record.revision === this.revision + 1, `P7: revision ${record.revision} after ${this.revision}`);
    promise(record.prevHash === this.hash, `P7: revision ${record.revision} does not continue the one before`);
    promise(this.hashOf(record) === record.hash, `P7: the hash of revision ${record.revision} is not its own`);
    promise(record.time >= this.time, `P7: the time of revision ${record.revision} is before that of the one before`);
    promise(record.time <= databaseNow + this.maxClockSkew, `P11: revision ${record.revision} is from the future`);
    this.revision = record.revision;
    this.hash = record.hash;
    this.time = record.time;
  }
}
