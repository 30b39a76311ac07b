import { randomUUID } from 'node:crypto';
import { ResourcePattern } from '../../route-table/index.js';

/**
 * The local override (C12): in an emergency a person lets their own writes in at the target, deliberately, for a limited
 * time, on record, with the coordinator down or not. Who the person is the service finds out; that it is that person is
 * what `person` of a request says.
 */

/** What a person asks for. */
export interface OverrideGrant {
  /** Names it in the records; made up when absent. At most 128 printable ASCII characters. */
  readonly id?: string;
  /** The person, as the service authenticates them; at most 256 bytes. Only their requests are let in. */
  readonly who: string;
  /** Why it is needed; at most 1,024 bytes. */
  readonly why: string;
  /** When it ends; at most 24 h ahead. */
  readonly until: Date;
  /** Which resources: `release/prod-eu`, `release/{env}`, `route/{name...}`; 1 to 32. */
  readonly patterns: readonly string[];
}

/** An override that was checked. */
export interface Override {
  readonly id: string;
  /** The person, as the service authenticated them. */
  readonly who: string;
  /** Their reason, as they gave it. */
  readonly why: string;
  /** From then on it lets nothing in. */
  readonly until: Date;
  /** The resources that it is about. */
  readonly patterns: readonly string[];
}

/** What is kept of an override: that it began, or a request that it let in. */
export interface OverrideRecord {
  readonly override: Override;
  /** Null: that it began. */
  readonly use: {
    /** Random, one for each request that is let in: what callers choose may come twice. */
    readonly id: string;
    /** Correlates it; chosen by the caller. */
    readonly requestId: string;
    readonly usedAt: Date;
    readonly writes: readonly {
      readonly resource: string;
      readonly action: string;
      readonly observedVersion?: string | undefined;
    }[];
  } | null;
}

const MAX_HOURS = 24;
const MAX_PATTERNS = 32;
/** Overrides in force at a time, at one gate. */
const MAX_ACTIVE = 100;
const PRINTABLE = /^[\x21-\x7e]([\x20-\x7e]{0,126}[\x21-\x7e])?$/;

/** What the coordinator takes as text. */
function isText(text: string, maxBytes: number): boolean {
  return text.trim() !== '' && Buffer.byteLength(text) <= maxBytes && !/\p{Cc}|\p{Surrogate}/u.test(text);
}

/** Overrides in force at one gate. */
export class ActiveOverrides {
  private readonly active = new Map<string, { readonly override: Override; readonly patterns: ResourcePattern[] }>();

  /** Checks what is asked for; throws a TypeError that says what is wrong. Nothing is let in yet. */
  check(grant: OverrideGrant, now: number): Override {
    const { id = randomUUID(), who, why, until, patterns } = grant;
    const wrong = (what: string): never => {
      throw new TypeError(`the override cannot be made: ${what}`);
    };
    if (!PRINTABLE.test(id)) wrong('id must be 1 to 128 printable ASCII characters');
    if (!isText(who, 256)) wrong('who must be a person, at most 256 bytes without control characters');
    if (!isText(why, 1_024)) wrong('why must be a reason, at most 1,024 bytes without control characters');
    const lasts = until.getTime() - now;
    if (!(lasts > 0 && lasts <= MAX_HOURS * 3_600_000)) wrong(`until must be in the next ${MAX_HOURS} hours`);
    if (patterns.length < 1 || patterns.length > MAX_PATTERNS) wrong(`patterns must be 1 to ${MAX_PATTERNS}`);
    for (const pattern of patterns) ResourcePattern.of(pattern);
    return { id, who, why, until, patterns: [...patterns] };
  }

  /** Lets it count from now on. */
  add(override: Override, now: number): void {
    for (const [id, { override: other }] of this.active) if (other.until.getTime() <= now) this.active.delete(id);
    if (this.active.size >= MAX_ACTIVE) throw new TypeError(`there are ${MAX_ACTIVE} overrides in force already`);
    this.active.set(override.id, {
      override,
      patterns: override.patterns.map((pattern) => ResourcePattern.of(pattern)),
    });
  }

  /** The one of this person that covers all of these resources; undefined: there is none. */
  find(who: string, resources: readonly string[], now: number): Override | undefined {
    for (const { override, patterns } of this.active.values()) {
      if (override.who !== who || override.until.getTime() <= now) continue;
      if (resources.every((resource) => patterns.some((pattern) => pattern.matches(resource)))) return override;
    }
    return undefined;
  }

  /** Whether it still counts. */
  isInForce({ id, until }: Override, now: number): boolean {
    return this.active.has(id) && until.getTime() > now;
  }

  /** Ends it before its time; false: it was not in force. */
  end(id: string): boolean {
    return this.active.delete(id);
  }
}
