import type { Confirmation } from '../domain/credential.js';
import type { RequestedEntry, WriteSetRequest } from '../domain/entry.js';
import { invalidArgument, type Violation } from '../domain/fault.js';
import { type Micros, SECOND } from '../domain/time.js';

/** Violations named in one answer. */
const MAX_VIOLATIONS = 50;

/** Collects what is wrong with a request, to name all of it at once. */
export class FieldChecks {
  private readonly violations: Violation[] = [];

  reject(field: string, description: string): void {
    if (this.violations.length < MAX_VIOLATIONS) this.violations.push({ field, description });
  }

  /** Throws INVALID_ARGUMENT when anything was rejected. */
  done(): void {
    if (this.violations.length > 0) throw invalidArgument(this.violations);
  }

  /** Free text of a caller: no control characters but line breaks and tabs, well-formed, bounded. */
  text(field: string, value: string, maxBytes: number, required = false): void {
    if (required && value.trim() === '') this.reject(field, 'is required');
    else if (Buffer.byteLength(value) > maxBytes) this.reject(field, `must be at most ${maxBytes} bytes`);
    else if (UNWELCOME.test(value))
      this.reject(field, 'must not contain control characters or half of a surrogate pair');
  }

  /** Names made of printable ASCII: idempotency keys, request ids; also ids as callers present them, which may be of nothing. */
  printable(field: string, value: string, required: boolean): void {
    if (value === '' && !required) return;
    if (!PRINTABLE.test(value)) this.reject(field, 'must be 1 to 128 printable ASCII characters');
  }

  /** Ids that Writ makes. */
  id(field: string, value: string): void {
    if (!ID.test(value)) this.reject(field, 'must be 32 lower-case hexadecimal digits');
  }

  /** SHA-256 in base64url: of a certificate, a JWK. */
  thumbprint(field: string, value: string): void {
    if (!THUMBPRINT.test(value)) this.reject(field, 'must be 43 base64url characters: a SHA-256');
  }

  /** The key that a presenter proves to have. */
  confirmation(field: string, { kind, thumbprint }: Confirmation): void {
    this.thumbprint(`${field}.${kind === 'jkt' ? 'jkt' : 'x5t_s256'}`, thumbprint);
  }

  between(field: string, value: Micros, min: Micros, max: Micros): void {
    if (value < min || value > max) this.reject(field, `must be from ${min / SECOND} s to ${max / SECOND} s`);
  }

  writeSet(field: string, request: WriteSetRequest, maxEntries: number): void {
    const given = [request.entries.length > 0, request.task !== null, request.resourceSet !== null].filter(
      Boolean,
    ).length;
    if (given !== 1) {
      this.reject(
        `${field}entries`,
        'give exactly one of entries, task and resource_set; a write set that names no resource cannot be checked',
      );
      return;
    }
    this.entries(`${field}entries`, request.entries, maxEntries);
    if (request.task !== null) {
      this.text(`${field}task.name`, request.task.name, 128, true);
      this.parameters(`${field}task.parameters`, Object.entries(request.task.parameters));
    }
    if (request.resourceSet !== null) this.text(`${field}resource_set`, request.resourceSet, 128);
  }

  private parameters(field: string, parameters: readonly (readonly [string, string])[]): void {
    if (parameters.length > MAX_PARAMETERS) this.reject(field, `must be at most ${MAX_PARAMETERS}`);
    else if (!parameters.every(([name]) => PARAMETER.test(name)))
      this.reject(field, 'names must be 1 to 64 letters, digits and any of _ -, beginning with a letter or _');
    else for (const [name, value] of parameters) this.text(`${field}[${name}]`, value, 1_024);
  }

  entries(field: string, entries: readonly RequestedEntry[], maxEntries: number): void {
    if (entries.length > maxEntries) this.reject(field, `must be at most ${maxEntries} (WRIT_MAX_ENTRIES)`);
    else entries.forEach((entry, index) => this.entry(`${field}[${index}]`, entry));
  }

  resource(field: string, resource: string): void {
    if (resource === '') this.reject(field, 'is required');
    else this.text(field, resource, 2_048);
  }

  private entry(field: string, entry: RequestedEntry): void {
    this.resource(`${field}.resource`, entry.resource);
    if (entry.actions.length > 32) this.reject(`${field}.actions`, 'must be at most 32');
    entry.actions.forEach((action, index) => this.action(`${field}.actions[${index}]`, action));
    if (entry.observedVersion !== null) this.text(`${field}.observed_version`, entry.observedVersion, 256);
  }

  action(field: string, action: string): void {
    if (!ACTION.test(action))
      this.reject(field, 'must be 1 to 128 letters, digits and any of . _ : -, beginning with a letter or digit');
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
export const UNWELCOME = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|\p{Surrogate}/u;
const PRINTABLE = /^[\x21-\x7e]([\x20-\x7e]{0,126}[\x21-\x7e])?$/;
const ID = /^[0-9a-f]{32}$/;
const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/;
const ACTION = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
const MAX_PARAMETERS = 64;
/** As conflict maps declare them. */
const PARAMETER = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const NAMESPACE = /^[a-z][a-z0-9-]{0,63}$/;

/** Empty means "default". */
export function namespaceOf(name: string, field = 'namespace'): string {
  if (name === '') return 'default';
  if (!NAMESPACE.test(name)) {
    throw invalidArgument([{ field, description: 'must be 1 to 64 of a-z, 0-9 and "-", beginning with a letter' }]);
  }
  return name;
}
