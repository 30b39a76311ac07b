import type { KeyPair } from 'dpop';
import { WritError } from '../common/errors.js';
import { UndeclaredTargetError } from './errors.js';

/** A key pair that proves who presents a credential (RFC 9449): `generateKeyPair('ES256')` of the package `dpop`. */
export type DpopKeyPair = KeyPair;

/** A target service, and what is presented to it. */
export interface Target {
  /**
   * The target's principal name: requests carry a credential for it. Absent: they carry lease id and fencing tokens, and
   * how the target knows the caller is the caller's business.
   */
  readonly audience?: string;
  /** Where it is, 1 to 16 origins such as `https://releases.example.com`. Nothing is ever presented anywhere else. */
  readonly origins: readonly string[];
  /** With it the credential is bound to the key, and each request carries a proof of it. */
  readonly dpop?: DpopKeyPair;
  /** `beyond-loopback`: credentials may travel unencrypted to other machines, where the network protects them. */
  readonly allowInsecure?: 'beyond-loopback';
  /** Instead of the global `fetch`: for client certificates, or a proxy. It must follow no redirect when told so. */
  readonly fetch?: typeof fetch;
}

const MAX_TARGETS = 16;
const MAX_ORIGINS = 16;

/** The declared targets of a lease, found by origin or by audience. */
export class Targets {
  private readonly byOrigin = new Map<string, Target>();
  private readonly byAudience = new Map<string, Target>();

  /** Throws a WritError that names the field which is wrong. */
  constructor(readonly all: readonly Target[]) {
    if (all.length > MAX_TARGETS) throw wrong('targets', `must be at most ${MAX_TARGETS}`);
    for (const [index, target] of all.entries()) this.add(target, `targets[${index}]`);
  }

  /** The target at this address. Throws an UndeclaredTargetError. */
  at(url: URL): Target {
    const target = this.byOrigin.get(url.origin);
    if (target === undefined) throw new UndeclaredTargetError(url.origin);
    return target;
  }

  /** The target by its principal name. Throws an UndeclaredTargetError. */
  named(audience: string): Target {
    const target = this.byAudience.get(audience);
    if (target === undefined) throw new UndeclaredTargetError(audience);
    return target;
  }

  private add(target: Target, field: string): void {
    const { audience, origins, dpop } = target;
    if (audience !== undefined) {
      if (!/^[\x21-\x7e]{1,128}$/.test(audience)) throw wrong(`${field}.audience`, 'must be 1 to 128 ASCII characters');
      if (this.byAudience.has(audience)) throw wrong(`${field}.audience`, `${audience} is there twice`);
      this.byAudience.set(audience, target);
    }
    if (dpop !== undefined && audience === undefined)
      throw wrong(`${field}.dpop`, 'needs an audience: the proof is for a credential');
    if (origins.length < 1 || origins.length > MAX_ORIGINS)
      throw wrong(`${field}.origins`, `must be 1 to ${MAX_ORIGINS}`);
    for (const [index, text] of origins.entries()) {
      const origin = originOf(text, target, `${field}.origins[${index}]`);
      if (this.byOrigin.has(origin)) throw wrong(`${field}.origins[${index}]`, `${origin} is there twice`);
      this.byOrigin.set(origin, target);
    }
  }
}

function originOf(text: string, { allowInsecure }: Target, field: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url !== undefined && url.href === `${url.origin}/` && /^https?:$/.test(url.protocol);
  if (!isOrigin)
    throw wrong(field, `must be an origin such as https://releases.example.com, not ${JSON.stringify(text)}`);
  if (url.protocol === 'http:' && allowInsecure !== 'beyond-loopback' && !isLoopback(url.hostname))
    throw wrong(field, `${url.origin} is another machine, and what is presented would travel there unencrypted`);
  return url.origin;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

const { wrong } = WritError;
