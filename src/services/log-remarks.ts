import { digestIn } from '../engine/event-texts.js';
import type { EventRecord } from '../storage/store.js';

/** What a walk over a verified log finds to say beside the verdict. Memory does not grow with the log. */

/** A cut that the log records. */
export interface RecordedCut {
  readonly firstRevision: number;
  /** Hash of the event before. */
  readonly hashBefore: string;
  /** SHA-256 of the archive. */
  readonly archiveDigest: string;
}

/** The cut that this event records; null: none. */
export function cutIn({ kind, body }: EventRecord): RecordedCut | null {
  if (kind !== 'log_cut') return null;
  try {
    const { firstRevision, checkpoint, archiveDigest } = JSON.parse(body) as RecordedCut & {
      checkpoint: { hash: string };
    };
    return { firstRevision, hashBefore: checkpoint.hash, archiveDigest };
  } catch {
    return null;
  }
}

/** Runs whose missing texts are remembered one by one. */
const MAX_RUNS = 10_000;

/**
 * Free texts that an export does not have, though its events have their digests. Retention erases the oldest first, and
 * an erasure of a run's texts is an event: what is missing for neither reason was left out of the export.
 */
export class MissingTexts {
  private missing = 0;
  private erased = 0;
  /** Missing ones that come after one that is there, by run: retention did not erase them. */
  private readonly unexplained = new Map<string, { count: number; firstRevision: number }>();
  private anyThere = false;
  private tooMany = false;

  note(event: EventRecord): void {
    if (event.texts.length > 0) this.anyThere = true;
    else if (event.bodyVersion === 2 && hasDigest(event.body)) this.noteMissing(event);
    if (event.kind === 'texts_erased') this.noteErasure(event.runId);
  }

  private noteMissing({ runId, revision }: EventRecord): void {
    this.missing += 1;
    if (!this.anyThere) return;
    const seen = this.unexplained.get(runId);
    if (seen !== undefined) seen.count += 1;
    else if (this.unexplained.size < MAX_RUNS) this.unexplained.set(runId, { count: 1, firstRevision: revision });
    else this.tooMany = true;
  }

  private noteErasure(runId: string): void {
    this.erased += this.unexplained.get(runId)?.count ?? 0;
    this.unexplained.delete(runId);
  }

  remarks(): string[] {
    if (this.missing === 0) return [];
    const left = [...this.unexplained.values()];
    const count = left.reduce((sum, one) => sum + one.count, 0);
    const first = left.reduce((least, one) => Math.min(least, one.firstRevision), Number.POSITIVE_INFINITY);
    const remarks = [
      `${this.missing} events are without their free text; of ${this.erased} an event says that it was erased, and of the oldest ones retention may have erased it.`,
    ];
    if (count > 0)
      remarks.push(
        `The texts of ${count} events${this.tooMany ? ' at least' : ''}, the first at revision ${first}, are missing for neither reason: they were left out of this export, or erased by a request that comes after its end.`,
      );
    return remarks;
  }
}

function hasDigest(body: string): boolean {
  const search = (value: unknown): boolean =>
    digestIn(value) !== null || (typeof value === 'object' && value !== null && Object.values(value).some(search));
  try {
    return search(JSON.parse(body));
  } catch {
    return false;
  }
}
