import type { Override, OverrideRecord } from './override.js';

/**
 * Where a service keeps what overrides did, until the coordinator has been told and after: a file (`fileOverrideJournal`),
 * its own Postgres (`postgresOverrideJournal`), or anything that passes their tests.
 */
export interface OverrideJournal {
  /**
   * Keeps the record; durable when it resolves. The same override and use again changes nothing. What cannot be kept
   * is rejected, and then nothing is let in.
   */
  append(record: OverrideRecord): Promise<void>;
  /** Those that the coordinator has not been told of, oldest first, at most `limit`. */
  pending(limit: number): Promise<readonly OverrideRecord[]>;
  /** The coordinator has this one in its log. */
  reported(record: OverrideRecord): Promise<void>;
}

/** Records not yet reported that a journal takes; past that nothing more is let in. */
export const MAX_PENDING = 10_000;

/** What names a record. */
export function recordKey({ override, use }: OverrideRecord): string {
  return JSON.stringify([override.id, use?.id ?? null]);
}

/** A record as JSON keeps it. */
export function toJson({ override, use }: OverrideRecord): object {
  return {
    override: { ...override, until: override.until.toISOString() },
    use: use === null ? null : { ...use, usedAt: use.usedAt.toISOString() },
  };
}

/** A record as JSON kept it. */
export function fromJson(json: unknown): OverrideRecord {
  const { override, use } = json as {
    override: Omit<Override, 'until'> & { until: string };
    use: (Omit<NonNullable<OverrideRecord['use']>, 'id' | 'usedAt'> & { id?: string; usedAt: string }) | null;
  };
  return {
    override: { ...override, until: new Date(override.until) },
    // Journals of before uses had ids knew them by their request.
    use: use === null ? null : { ...use, id: use.id ?? use.requestId, usedAt: new Date(use.usedAt) },
  };
}
