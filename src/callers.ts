import { createHash } from 'node:crypto';
import { type Authenticator, type CallerAuthenticator, createCallerAuthenticator } from './auth/authenticator.js';
import type { CertificateIndex } from './auth/certificates.js';
import type { KeySources } from './auth/issuers.js';
import { createKeySource } from './auth/key-source.js';
import type { PrincipalEntry } from './auth/principal-entry.js';
import { type PrincipalsFile, readPrincipalsFile } from './auth/principals-file.js';
import { RefusedCallersLog } from './auth/refused-callers.js';
import { Fault } from './domain/fault.js';
import type { Logger } from './platform/log.js';
import type { Metrics } from './platform/metrics.js';
import { LOOK_EVERY_MS, type WatchedFiles, watchFiles } from './platform/watched-files.js';

/** What the callers of a coordinator are known by, at any one time. */
export interface Known {
  readonly authenticator: CallerAuthenticator;
  /** The key of the names under which blocking leases appear. */
  readonly blockerKey: Uint8Array;
}

export interface CallersOptions {
  /** WRIT_TOKENS_FILE; null: only the development tokens. */
  readonly file: string | null;
  /** Whether client certificates are asked for. */
  readonly certificates: boolean;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** How often the file is looked at for a change. */
  readonly lookEveryMs?: number;
}

/**
 * Who may call: the principals file, read at the start and again whenever it changes, and the development tokens. A
 * change takes effect as a whole for the calls that begin after it; a file that cannot be used is logged, and the one
 * before stays in force.
 */
export class Callers {
  readonly #options: CallersOptions;
  readonly #refused: RefusedCallersLog;
  readonly #sources = new Map<string, ReturnType<KeySources>>();
  #file: PrincipalsFile | null = null;
  #dev: readonly PrincipalEntry[] = [];
  #index: typeof CertificateIndex | undefined;
  #known: Known | null = null;
  #watched: WatchedFiles | undefined;

  constructor(options: CallersOptions) {
    this.#options = options;
    this.#refused = new RefusedCallersLog((seen) =>
      options.log.warn({ ...seen }, 'callers could not be authenticated'),
    );
  }

  /** Reads the file; throws a PrincipalsFileError. */
  async read(): Promise<void> {
    const { file, certificates } = this.#options;
    if (file !== null) this.#file = await readPrincipalsFile(file);
    // Reading certificates takes a large library, which is loaded only where there can be any.
    if (certificates) this.#index = (await import('./auth/certificates.js')).CertificateIndex;
    this.#compose(this.#file);
  }

  /** Lets callers in, with the development tokens besides; `changed` is told of what they are known by from then on. */
  open(dev: readonly PrincipalEntry[], changed: (known: Known) => void): void {
    this.#dev = dev;
    this.#known = this.#compose(this.#file);
    changed(this.#known);
    if (this.#file === null) return;
    const look = async (): Promise<void> => {
      const known = await this.#reload();
      if (known !== null) changed(known);
    };
    this.#watched = watchFiles(this.#file.files, look, this.#options.lookEveryMs ?? LOOK_EVERY_MS);
  }

  close(): void {
    this.#watched?.stop();
    this.#refused.flush();
  }

  /** As an Authenticator does; a Fault `unavailable` before callers are let in. */
  authenticate(...presented: Parameters<Authenticator['authenticate']>): ReturnType<Authenticator['authenticate']> {
    if (this.#known === null) throw new Fault('unavailable', 'STARTING', 'this coordinator is starting');
    return this.#known.authenticator.authenticate(...presented);
  }

  /** As a CallerAuthenticator does. */
  async initiatorOf(token: string, caller: string): Promise<string> {
    if (this.#known === null) throw new Fault('unavailable', 'STARTING', 'this coordinator is starting');
    return this.#known.authenticator.initiatorOf(token, caller);
  }

  async #reload(): Promise<Known | null> {
    const { file, log } = this.#options;
    if (file === null) return null;
    try {
      const read = await readPrincipalsFile(file);
      this.#known = this.#compose(read);
      this.#forgetSources(read);
      this.#file = read;
      this.#watched?.set(read.files);
      log.info({ principals: read.principals.length, issuers: read.issuers.length }, 'principals file reloaded');
      return this.#known;
    } catch (error) {
      log.error({ detail: (error as Error).message }, 'the new principals file is not used');
      return null;
    }
  }

  #compose(file: PrincipalsFile | null): Known {
    const { metrics } = this.#options;
    const principals = [...(file?.principals ?? []), ...this.#dev];
    return {
      authenticator: createCallerAuthenticator({
        principals,
        issuers: file?.issuers ?? [],
        keySources: (issuer, keys) => this.#sourceOf(issuer, keys),
        ...(this.#index === undefined ? {} : { certificates: this.#index }),
        refused: (cause) => {
          metrics.callerRefused(cause);
          this.#refused.note(cause);
        },
      }),
      blockerKey: makeBlockerKey(principals, file),
    };
  }

  /** Keys that were fetched are kept across a change of the file, also while their server is down. */
  #sourceOf(...[issuer, keys]: Parameters<KeySources>): ReturnType<KeySources> {
    if (keys.kind === 'file') return createKeySource(issuer, keys);
    const name = nameOf(issuer, keys);
    const source = this.#sources.get(name) ?? createKeySource(issuer, keys);
    this.#sources.set(name, source);
    return source;
  }

  /** Of issuers that the file no longer has. */
  #forgetSources({ issuers }: PrincipalsFile): void {
    const named = new Set(issuers.map(({ issuer, keys }) => nameOf(issuer, keys)));
    for (const name of this.#sources.keys()) if (!named.has(name)) this.#sources.delete(name);
  }
}

function nameOf(...source: Parameters<KeySources>): string {
  return JSON.stringify(source);
}

/**
 * Replicas of one installation share its principals file and must use the same names, so the key comes from the tokens'
 * hashes, which only those see who configure the coordinator; from the file itself where it has no tokens.
 */
function makeBlockerKey(entries: readonly PrincipalEntry[], file: PrincipalsFile | null): Uint8Array {
  const hashes = entries.flatMap(({ tokenSha256 }) => tokenSha256 ?? []).toSorted();
  const secret = hashes.length > 0 ? hashes.join('\n') : (file?.text ?? '');
  return createHash('sha256').update(`writ blocker names\n${secret}`).digest();
}
