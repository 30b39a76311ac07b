import type { NewCredential } from '../../../src/domain/credential.js';
import type { AcquireCommand } from '../../../src/domain/decide/acquire.js';
import type { AmendCommand } from '../../../src/domain/decide/amend.js';
import type { Lease } from '../../../src/domain/lease.js';
import { type Micros, SECOND } from '../../../src/domain/time.js';
import type { World } from './world.js';

/** An acquire by one key, as its client remembers it. */
export interface Asked {
  readonly command: AcquireCommand;
  leaseId: string | null;
}

/** A run and what its worker knows. */
export interface Worker {
  readonly runId: string;
  /** The run that it is a part of. */
  readonly parent: Worker | undefined;
  readonly principal: string;
  readonly asked: Asked[];
  readonly amended: { readonly command: AmendCommand; effectiveAt: Micros | null }[];
  /** Leases it was told of. */
  readonly told: Map<string, Lease>;
  readonly credentials: NewCredential[];
  made: boolean;
}

/** One that the worker was told of, mostly one that it may think live. */
export function someLease({ facts, draw, database }: World, worker: Worker): Lease | undefined {
  const told = [...worker.told.values()];
  const live = told.filter((lease) => facts.isLive(lease.leaseId, database.now));
  return draw.pick(live.length > 0 && draw.chance(75) ? live : told.slice(-6));
}

/** Mostly one that has not expired. */
export function someCredential({ draw, database }: World, worker: Worker): NewCredential | undefined {
  const live = worker.credentials.filter(({ expiresAt }) => expiresAt * SECOND > database.now);
  return draw.pick(live.length > 0 && draw.chance(90) ? live : worker.credentials.slice(-2));
}
