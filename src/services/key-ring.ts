import {
  importPublicKey,
  makeSigningKey,
  openSigningKey,
  type PrivateKey,
  type PublicKey,
  SealedElsewhere,
} from '../auth/signing-keys.js';
import { Fault } from '../domain/fault.js';
import {
  type FreshKeys,
  isDue,
  KEYS_FRESH_FOR,
  type KeySchedule,
  type SigningKey,
  upkeep,
} from '../domain/signing-keys.js';
import { type Micros, SECOND } from '../domain/time.js';
import type { Store } from '../storage/store.js';

const REFRESH_EVERY_MS = 5_000;
/** Key ids that nobody knows make the set be read again, but not more often than this. */
const UNKNOWN_EVERY: Micros = 1 * SECOND;

export interface KeyRingOptions {
  readonly store: Pick<Store, 'readSigningKeys' | 'changeSigningKeys'>;
  /** Null: this replica signs nothing; it publishes and verifies what others sign. */
  readonly keyEncryptionKey: Uint8Array | null;
  readonly schedule: KeySchedule;
  readonly monotonicNow: () => Micros;
  /** Told of every change that this replica made, after it was made. */
  readonly onChange: (changes: readonly SigningKey[], actor: string, reason: string) => void;
  readonly onProblem: (message: string, error: unknown) => void;
}

/** A key that signs now. */
export interface Signer {
  readonly keyId: string;
  readonly key: PrivateKey;
}

/**
 * This replica's copy of the signing keys. It is never older than `KEYS_FRESH_FOR` when something is signed or published
 * by it; which key signs is decided in the database, by its clock.
 */
export class KeyRing {
  private keys: readonly SigningKey[] = [];
  private readAt: Micros = Number.NEGATIVE_INFINITY;
  private now: Micros = 0;
  private reading: Promise<void> | null = null;
  private nextReading: Promise<void> | null = null;
  private readonly publicKeys = new Map<string, Promise<PublicKey>>();
  private opened: { readonly keyId: string; readonly key: Promise<PrivateKey> } | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly options: KeyRingOptions) {}

  /**
   * Makes the first keys where there are none, and keeps the set as it should be. What fails is tried again; keys that
   * cannot be opened are told of once, and credentials are refused.
   */
  async start(): Promise<void> {
    await this.keepUp();
    await this.signer().catch((error) => this.options.onProblem('no credentials are issued by this replica', error));
    this.timer = setInterval(() => void this.keepUp(), REFRESH_EVERY_MS);
    this.timer.unref();
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
  }

  /** The key to sign with. Throws a Fault when this replica cannot sign. */
  async signer(): Promise<Signer> {
    const { keyEncryptionKey } = this.options;
    if (keyEncryptionKey === null) throw credentialsOff();
    await this.fresh();
    if (this.current() === undefined) await this.change('system', 'the first keys', (...all) => this.upkeep(...all));
    const current = this.current();
    if (current === undefined) throw new Error('the set has no current key');
    if (this.opened?.keyId !== current.keyId)
      this.opened = { keyId: current.keyId, key: openSigningKey(current, keyEncryptionKey) };
    const { keyId, key } = this.opened;
    try {
      return { keyId, key: await key };
    } catch (error) {
      this.opened = null;
      if (error instanceof SealedElsewhere) throw sealedElsewhere(error);
      throw error;
    }
  }

  /** The public keys to publish: all that sign, will sign or have signed something that may live. */
  async published(): Promise<readonly SigningKey[]> {
    await this.fresh();
    return this.keys.filter(({ state }) => state !== 'retired');
  }

  /** All of them, as they are after this call whichever replica changed them, and the clock they were read at. */
  async all(): Promise<{ readonly keys: readonly SigningKey[]; readonly now: Micros }> {
    await this.confirm();
    return { keys: this.keys, now: this.now };
  }

  /** The key to verify with; undefined: it was never published, or has retired. */
  async verificationKey(keyId: string): Promise<PublicKey | undefined> {
    await this.fresh();
    const age = this.options.monotonicNow() - this.readAt;
    if (!this.isPublished(keyId) && age > UNKNOWN_EVERY) await this.read();
    const key = this.keys.find((candidate) => candidate.keyId === keyId && candidate.state !== 'retired');
    if (key === undefined) return undefined;
    const known = this.publicKeys.get(keyId) ?? importPublicKey(key);
    this.publicKeys.set(keyId, known);
    return known;
  }

  /**
   * Resolves when the set was read by a statement that was sent after this call: what `isPublished` says then is true of
   * a moment after it, whichever replica changed the set. Whoever asks meanwhile shares the next statement.
   */
  confirm(): Promise<void> {
    if (this.reading === null) return this.read();
    this.nextReading ??= this.reading
      .catch(() => undefined)
      .then(() => {
        this.nextReading = null;
        return this.read();
      });
    return this.nextReading;
  }

  /** The database clock, about: for what needs no proof. */
  estimatedNow(): Micros {
    return this.now + this.options.monotonicNow() - this.readAt;
  }

  isPublished(keyId: string): boolean {
    return this.keys.some((key) => key.keyId === keyId && key.state !== 'retired');
  }

  /** Changes the set by what `decide` says, while no other replica can. */
  async change(
    actor: string,
    reason: string,
    decide: (keys: readonly SigningKey[], now: Micros, fresh: FreshKeys) => readonly SigningKey[],
  ): Promise<readonly SigningKey[]> {
    const { keyEncryptionKey, store } = this.options;
    if (keyEncryptionKey === null) throw credentialsOff();
    const fresh: FreshKeys = [await makeSigningKey(keyEncryptionKey), await makeSigningKey(keyEncryptionKey)];
    const changes = await store.changeSigningKeys((keys, now) => decide(keys, now, fresh));
    // A read that began before the change does not serve.
    await this.confirm();
    if (changes.length > 0) this.options.onChange(changes, actor, reason);
    return changes;
  }

  private current(): SigningKey | undefined {
    return this.keys.find((key) => key.state === 'current');
  }

  private upkeep(keys: readonly SigningKey[], now: Micros, fresh: FreshKeys): readonly SigningKey[] {
    return upkeep(keys, now, this.options.schedule, fresh);
  }

  private async keepUp(): Promise<void> {
    try {
      await this.read();
      const { keyEncryptionKey, schedule } = this.options;
      if (keyEncryptionKey === null || !isDue(this.keys, this.now, schedule)) return;
      // Who cannot open the key that signs would seal the next one away from the others.
      if (this.current() !== undefined) await this.signer();
      await this.change('system', 'the schedule', (...all) => this.upkeep(...all));
    } catch (error) {
      this.options.onProblem('the signing keys could not be looked after', error);
    }
  }

  /** Reads the set unless that was done lately. */
  private async fresh(): Promise<void> {
    if (this.options.monotonicNow() - this.readAt > KEYS_FRESH_FOR) await this.read();
  }

  /** One statement at a time, for all who ask meanwhile. */
  private read(): Promise<void> {
    this.reading ??= this.readOnce().finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  private async readOnce(): Promise<void> {
    // Counted from the send: what was read cannot be older than that.
    const sentAt = this.options.monotonicNow();
    const { keys, now } = await this.options.store.readSigningKeys();
    this.keys = keys;
    this.now = now;
    this.readAt = sentAt;
    for (const keyId of this.publicKeys.keys()) if (!this.isPublished(keyId)) this.publicKeys.delete(keyId);
  }
}

function credentialsOff(): Fault {
  return new Fault(
    'failed_precondition',
    'CREDENTIALS_OFF',
    'This coordinator has no key-encryption key, so it issues no credentials. Set WRIT_KEY_ENCRYPTION_KEY or WRIT_KEY_ENCRYPTION_KEY_FILE.',
  );
}

function sealedElsewhere(cause: unknown): Fault {
  return new Fault(
    'failed_precondition',
    'SIGNING_KEYS_SEALED',
    'The signing keys were encrypted with another key-encryption key than this coordinator has. Give it that one, or make new keys: writ keys rotate --force.',
    { cause },
  );
}
