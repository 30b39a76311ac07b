import type { ChangeClass } from '../domain/change-class.js';

/**
 * What a class of write paths means (W4): what happens when a write meets a version that it was not made from, and who
 * resolves it. A write path without a class is never allowed unattended, so a route table without one is refused.
 */

/** What a writer does after a version conflict. */
export type OnConflict =
  | 'reread_retry_if_free'
  | 'reread_recompute_retry'
  | 'stop_show_both'
  | 'stop_ask_review'
  | 'stop_unless_leased';

/** What a class says about conflicts. */
export interface ChangeRule {
  readonly onConflict: OnConflict;
  /** The writer may go on by itself, after a fresh read and a new decision (W1a); never with the old body. */
  readonly retryable: boolean;
  /** Who resolves, where a route names nobody. */
  readonly resolver: string;
  /** For the writer, in words. */
  readonly next: string;
}

const RULES: Readonly<Record<ChangeClass, ChangeRule>> = {
  independent: {
    onConflict: 'reread_retry_if_free',
    retryable: true,
    resolver: 'agent',
    next: 'Read it again. If the name is still free and the change is still wanted, decide anew and write on that version.',
  },
  derived: {
    onConflict: 'reread_recompute_retry',
    retryable: true,
    resolver: 'agent',
    next: 'Read the inputs again, compute the value from them, and write the new value on the version that you read.',
  },
  shared_pointer: {
    onConflict: 'stop_show_both',
    retryable: false,
    resolver: 'release owner',
    next: 'Stop. Show both candidates, yours and the current one, to the resolver, who chooses.',
  },
  membership: {
    onConflict: 'stop_ask_review',
    retryable: false,
    resolver: 'account owner',
    next: 'Stop. Ask the resolver to review the change against the current members and permissions.',
  },
  shared_document: {
    onConflict: 'stop_unless_leased',
    retryable: false,
    resolver: 'named operator',
    next: 'Stop. No lease of yours names the document itself, so the resolver decides what happens to your change.',
  },
};

/** Of a shared document that the writer holds by name: nobody else decides about it meanwhile. */
const UNDER_EXPLICIT_LEASE: ChangeRule = {
  ...RULES.shared_document,
  retryable: true,
  next: 'Your lease names the document itself. Read it again, decide anew whether your change is still wanted, and write on that version.',
};

/**
 * The rule of a class. `explicit`: a lease covers the write that the run holds alone and asked for by the resource's name;
 * what a rule of the map implied is none (W4). Default: there is none.
 */
export function changeRule(changeClass: ChangeClass, explicit = false): ChangeRule {
  return explicit && changeClass === 'shared_document' ? UNDER_EXPLICIT_LEASE : RULES[changeClass];
}
