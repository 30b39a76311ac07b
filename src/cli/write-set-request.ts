import { toDuration } from '../clients/common/time.js';
import { wireEntries } from '../clients/runner/write-set.js';
import type { AskedWriteSet, WriteSetFlags } from './arguments.js';

/** Options that say what is asked for, for which run, and how. */
export interface AcquireOptions extends WriteSetFlags {
  readonly run: string;
  readonly delegatedFrom?: string;
  readonly ttl?: number;
  readonly wait?: number;
  readonly key?: string;
  readonly purpose?: string;
  readonly requestId?: string;
}

/** A coordinator that answers `waiting` at once is not asked in a tight loop. */
export const MIN_ROUND_MS = 100;

export type AcquireRequest = ReturnType<typeof requestOf>;

/** What acquiring, previewing and taking over have in common. */
export function requestOf(asked: AskedWriteSet, options: AcquireOptions) {
  const { task } = asked;
  return {
    runId: options.run,
    entries: wireEntries(asked.resources ?? []),
    task: task === undefined ? undefined : { name: task.name, parameters: { ...task.parameters } },
    resourceSet: asked.resourceSet ?? '',
    delegatedFrom: options.delegatedFrom ?? '',
    ttl: options.ttl === undefined ? undefined : toDuration(options.ttl),
    wait: options.wait === undefined ? undefined : toDuration(options.wait),
    idempotencyKey: options.key ?? '',
    purpose: options.purpose ?? '',
    requestId: options.requestId ?? '',
  };
}
