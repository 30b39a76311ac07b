import type { Checkpoint, LogEvent } from '../api/shapes.js';
import { hexOfBase64 } from './event-body.js';
import { microsOf } from './moments.js';

/**
 * Verifies the log where it is read, in the browser (A2): the hash of every event is computed anew from what the event
 * says, every event follows the one before, none is missing, and the last one is the one that a signed checkpoint names.
 * docs of the event's `hash` in proto/writ/v1/audit_service.proto say what is hashed.
 */
export type ChainVerdict =
  | { readonly ok: true; readonly events: number; readonly first: number; readonly last: number; readonly head: string }
  | { readonly ok: false; readonly revision: number; readonly why: string };

const GENESIS = '0'.repeat(64);

/** Canonical JSON (RFC 8785) of all that is hashed beside the hash before; null: it has no canonical form. */
export function canonicalForm(event: LogEvent): string | null {
  const time = microsOf(event.time);
  const revision = Number(event.revision);
  if (time === null || !Number.isSafeInteger(revision)) return null;
  return (
    `{"actor":${JSON.stringify(event.actor ?? '')},"batch_id":${JSON.stringify(event.batchId ?? '')}` +
    `,"body":${JSON.stringify(event.body ?? '')},"body_version":${event.bodyVersion ?? 0}` +
    `,"kind":${JSON.stringify(event.kind)},"lease_id":${JSON.stringify(event.leaseId ?? '')}` +
    `,"namespace":${JSON.stringify(event.namespace)},"request_ids":${JSON.stringify(event.requestIds ?? [])}` +
    `,"resources":${JSON.stringify(event.resources ?? [])},"revision":${revision}` +
    `,"run_id":${JSON.stringify(event.runId ?? '')},"time":${time}}`
  );
}

/** Verifies events as they come, one after another; whatever has been wrong once stays wrong. */
export class ChainVerifier {
  readonly #namespace: string;
  #before: string | null = null;
  #first = 0;
  #last = 0;
  #count = 0;
  #wrong: ChainVerdict | null = null;

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  async take(event: LogEvent): Promise<void> {
    if (this.#wrong !== null) return;
    const revision = Number(event.revision);
    const why = await this.#flawOf(event, revision);
    if (why !== null) {
      this.#wrong = { ok: false, revision, why };
      return;
    }
    if (this.#count === 0) this.#first = revision;
    this.#count += 1;
    this.#last = revision;
    this.#before = hexOfBase64(event.hash ?? '');
  }

  get count(): number {
    return this.#count;
  }

  /** `begins`: the revision that the log is said to begin at, above 1 where what came before was archived and cut. */
  verdict(begins: number): ChainVerdict {
    if (this.#wrong !== null) return this.#wrong;
    if (this.#before === null) return { ok: false, revision: 0, why: 'There was no event at all.' };
    if (this.#first !== begins)
      return { ok: false, revision: begins, why: 'The log is said to begin with it, and it is missing.' };
    return { ok: true, events: this.#count, first: this.#first, last: this.#last, head: this.#before };
  }

  async #flawOf(event: LogEvent, revision: number): Promise<string | null> {
    if (event.namespace !== this.#namespace) return `It is of the namespace ${event.namespace}.`;
    if (this.#count > 0 && revision !== this.#last + 1)
      return `It follows ${this.#last}: an event is missing or out of order.`;
    const before = hexOfBase64(event.prevHash ?? '');
    if (this.#before !== null && before !== this.#before) return 'It does not follow the event before it.';
    if (revision === 1 && before !== GENESIS) return 'It is the first event, and says that another was before it.';
    const form = canonicalForm(event);
    if (form === null) return 'It has no canonical form.';
    if ((await hashOf(before, form)) !== hexOfBase64(event.hash ?? ''))
      return 'What it says is not what was hashed: it was changed.';
    return null;
  }
}

async function hashOf(before: string, form: string): Promise<string> {
  const text = new TextEncoder().encode(form);
  const bytes = new Uint8Array(32 + text.length);
  bytes.set(bytesOfHex(before));
  bytes.set(text, 32);
  return hexOf(await crypto.subtle.digest('SHA-256', bytes));
}

/** Who signed how far the log goes. */
export interface CheckpointVerdict {
  readonly ok: boolean;
  readonly why: string;
  /** SHA-256 of the public key (SPKI, DER): what to compare with a key that one got some other way. */
  readonly fingerprint: string;
}

/** Whether the checkpoint is signed by the key that it names. */
export async function verifyCheckpoint(checkpoint: Checkpoint): Promise<CheckpointVerdict> {
  const der = bytesOfBase64(checkpoint.publicKey.replace(/-----[^-]+-----|\s/g, ''));
  const fingerprint = hexOf(await crypto.subtle.digest('SHA-256', der));
  const time = microsOf(checkpoint.time);
  const statement = JSON.stringify({
    hash: hexOfBase64(checkpoint.hash),
    namespace: checkpoint.namespace,
    revision: Number(checkpoint.revision),
    time,
  });
  const bad = (why: string): CheckpointVerdict => ({ ok: false, why, fingerprint });
  if (!fingerprint.startsWith(checkpoint.keyId)) return bad('The key is not the one that the checkpoint names.');
  try {
    const key = await crypto.subtle.importKey('spki', der, { name: 'Ed25519' }, false, ['verify']);
    const signature = bytesOfBase64(checkpoint.signature);
    const signed = await crypto.subtle.verify({ name: 'Ed25519' }, key, signature, new TextEncoder().encode(statement));
    return signed
      ? { ok: true, why: '', fingerprint }
      : bad('The signature is not by this key, or of another statement.');
  } catch {
    return bad('This browser cannot verify Ed25519 signatures; `writ audit verify` can.');
  }
}

function bytesOfHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: hex.length / 2 }, (_, index) =>
    Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16),
  );
}

function bytesOfBase64(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0));
}

function hexOf(buffer: ArrayBuffer): string {
  return [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
