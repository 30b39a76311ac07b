/** Faults planted to see whether the checks find them. */
export type Sabotage =
  /** The database takes a batch whatever the head is. */
  | 'stale_head'
  /** The database does not prove times, and replicas' clocks run ahead. */
  | 'unproven_times'
  /** The database does not prove that keys are new. */
  | 'unproven_keys'
  /** Replicas answer checks from what they know, without asking the database. */
  | 'no_read_index'
  /** A replica passes over ends of leases. */
  | 'skipped_events'
  /** Replicas answer before their append has come back. */
  | 'early_answers'
  /** Replicas take credentials to be dead with their lease. */
  | 'no_lock_delay';
