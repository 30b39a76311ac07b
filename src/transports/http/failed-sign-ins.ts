import { isIPv6 } from 'node:net';
import { Fault } from '../../domain/fault.js';
import { monotonicMicros } from '../../platform/clock.js';
import { RETRY_AFTER_MS } from '../rate-limit.js';

/** Failures of one address that are let pass at once, */
const BURST = 10;
/** and how long one of them counts. */
const FORGOTTEN_AFTER_MICROS = 6e6;
/** Addresses that are remembered; the one that failed longest ago makes room. */
const MAX_ADDRESSES = 10_000;

interface Failures {
  readonly count: number;
  readonly at: number;
}

/**
 * Sign-ins that failed, by address, so that nobody can try without end. Tokens and codes have 256 random bits and are not
 * to be guessed; this bounds the work and the lines of the log. Sign-ins that succeed count for nothing.
 */
export class FailedSignIns {
  readonly #now: () => number;
  /** In the order of the last failure. */
  readonly #failures = new Map<string, Failures>();

  constructor(now: () => number = monotonicMicros) {
    this.#now = now;
  }

  get size(): number {
    return this.#failures.size;
  }

  /** Throws a Fault `resource_exhausted` when the address has failed too often lately. */
  admit(address: string): void {
    const left = this.#counted(keyOf(address)) - (BURST - 1);
    if (left <= 0) return;
    const retryMs = Math.ceil((left * FORGOTTEN_AFTER_MICROS) / 1_000);
    throw new Fault(
      'resource_exhausted',
      'SIGN_IN_LIMITED',
      `too many sign-ins from this address have failed; try again in ${Math.ceil(retryMs / 1_000)} s`,
      { metadata: { [RETRY_AFTER_MS]: String(retryMs) } },
    );
  }

  note(address: string): void {
    const key = keyOf(address);
    const count = this.#counted(key) + 1;
    this.#failures.delete(key);
    this.#failures.set(key, { count, at: this.#now() });
    if (this.#failures.size <= MAX_ADDRESSES) return;
    for (const oldest of this.#failures.keys()) {
      this.#failures.delete(oldest);
      return;
    }
  }

  #counted(key: string): number {
    const known = this.#failures.get(key);
    if (known === undefined) return 0;
    return Math.max(0, known.count - (this.#now() - known.at) / FORGOTTEN_AFTER_MICROS);
  }
}

/** Who has IPv6 has a network of addresses: its first 64 bits. */
function keyOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [left = [], right = []] = address.split('::').map((half) => half.split(':'));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}
