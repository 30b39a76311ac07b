import { z } from 'zod';
import { CHANGE_CLASSES } from '../domain/change-class.js';
import type { ConflictMapDocument, DocumentSide } from '../domain/conflict-map/document.js';
import { didYouMean, MAX_PROBLEMS } from '../domain/conflict-map/problems.js';
import { parseMapDuration, parseTimestamp } from './map-scalars.js';

/**
 * The one schema of a conflict map. It is closed: unknown keys are errors. YAML is read with every
 * scalar as the text it is written as, so that `no`, `1e3` and `007` mean what they say; what else than
 * text a value stands for is decided here.
 */

const MAX_LIST = 10_000;
const MAX_FEW = 1_000;
/** Tasks: the matrix looks at every pair of them. */
const MAX_TASKS = 256;
/** Actions of one kind or profile, before what it extends. */
const MAX_ACTIONS = 256;

/** Values by name, at most so many. */
function named<T extends z.ZodType>(value: T, most: number) {
  return z.record(name, value).refine((values) => Object.keys(values).length <= most, {
    error: `at most ${most.toLocaleString('en')} are allowed here`,
  });
}

/** Text of one line, without control characters. */
function line(most: number) {
  return z
    .string()
    .max(most)
    .refine((text) => !/\p{Cc}/u.test(text), { error: 'must be one line without control characters' });
}

const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/, {
  error: 'a name has letters, digits, ".", "_", ":" and "-", begins with a letter or digit, and is at most 128 long',
});
const parameter = z.string().regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, {
  error: 'a parameter has letters, digits, "_" and "-", begins with a letter or "_", and is at most 64 long',
});
const path = line(1_280).min(1);
const truth = z.enum(['true', 'false']).transform((text) => text === 'true');
const duration = z
  .string()
  .transform((text, context) =>
    parsed(
      parseMapDuration(text),
      'a duration such as 500ms, 60s, 5m, 1h or 1h30m is expected, more than zero and at most 366d',
      context,
    ),
  );
const timestamp = z
  .string()
  .transform((text, context) =>
    parsed(parseTimestamp(text), 'a time in RFC 3339 such as 2026-12-01T10:00:00Z is expected', context),
  );

function parsed(value: number | null, problem: string, context: z.RefinementCtx): number {
  if (value !== null) return value;
  context.addIssue({ code: 'custom', message: problem });
  return z.NEVER;
}

const access = z.enum(['read', 'stable_read', 'write']);

const action = z.strictObject({
  access: access.exactOptional(),
  concurrency: z.enum(['optimistic', 'lease']).exactOptional(),
  change_class: z.enum(CHANGE_CLASSES).exactOptional(),
  resolver: name.exactOptional(),
  approval: z.enum(['run', 'call']).exactOptional(),
  tracked: truth.exactOptional(),
});

const profile = {
  extends: name.exactOptional(),
  authority: z.enum(['write', 'propose', 'forbid']).exactOptional(),
  mode: z.enum(['observe', 'enforce']).exactOptional(),
  owner_service: z.array(line(256).min(1)).max(MAX_FEW).exactOptional(),
  validation: z.enum(['introspect', 'view', 'local']).exactOptional(),
  max_view_age: duration.exactOptional(),
  ttl: duration.exactOptional(),
  max_ttl: duration.exactOptional(),
  max_hold: duration.exactOptional(),
  progress_window: duration.exactOptional(),
  require_rehearsal: truth.exactOptional(),
  actions: named(action, MAX_ACTIONS).exactOptional(),
};

const entry = z.strictObject({
  resource: path,
  access,
  scope: z.enum(['exact', 'subtree']).exactOptional(),
  actions: z.array(name).max(MAX_FEW).exactOptional(),
});

const entries = z.array(entry).min(1).max(MAX_FEW);

const sideOfEntries = z.strictObject({ entries });
const sideOfTask = z.record(z.string(), line(1_280)).and(z.object({ task: name }));

/** A task with its parameters beside its name, or entries: which of the two is told by the keys, so that problems are about the right one. */
const side: z.ZodType<DocumentSide> = z.record(z.string(), z.unknown()).transform((value, context): DocumentSide => {
  const result = ('task' in value ? sideOfTask : sideOfEntries).safeParse(value, {
    error: messageOf,
    reportInput: true,
  });
  if (result.success) return result.data as DocumentSide;
  for (const issue of result.error.issues) context.issues.push({ ...issue, input: issue.input } as z.core.$ZodRawIssue);
  return z.NEVER;
});

export const document = z.strictObject({
  version: z.literal('1').transform(() => 1 as const),
  unmatched: z.enum(['deny', 'propose', 'observe']).exactOptional(),
  resolvers: named(
    z.strictObject({
      principals: z.array(line(256).min(1)).max(MAX_FEW).exactOptional(),
      channel: line(1_024).exactOptional(),
    }),
    MAX_FEW,
  ).exactOptional(),
  profiles: named(z.strictObject(profile), MAX_FEW).exactOptional(),
  kinds: z
    .array(z.strictObject({ pattern: path, sandbox: path.exactOptional(), ...profile }))
    .max(MAX_LIST)
    .exactOptional(),
  implies: z
    .array(
      z.strictObject({ when: z.strictObject({ pattern: path, access: access.exactOptional() }), touches: entries }),
    )
    .max(MAX_LIST)
    .exactOptional(),
  conflicts: z
    .array(z.strictObject({ between: z.tuple([path, path]), because: z.string().max(1_024).exactOptional() }))
    .max(MAX_FEW)
    .exactOptional(),
  aliases: z
    .array(z.strictObject({ from: line(2_048).min(1), to: path }))
    .max(MAX_FEW)
    .exactOptional(),
  sets: named(z.strictObject({ not_before: timestamp.exactOptional(), entries }), MAX_FEW).exactOptional(),
  tasks: named(
    z.strictObject({ params: z.array(parameter).max(32).exactOptional(), entries }),
    MAX_TASKS,
  ).exactOptional(),
  assertions: z
    .array(z.strictObject({ conflict: truth, a: side, b: side }))
    .max(MAX_FEW)
    .exactOptional(),
});

/** Something the schema found. */
export interface SchemaProblem {
  readonly code: 'unknown_key' | 'missing_key' | 'invalid_value';
  readonly message: string;
  readonly path: readonly (string | number)[];
}

export type SchemaResult =
  | { readonly ok: true; readonly document: ConflictMapDocument }
  | { readonly ok: false; readonly problems: readonly SchemaProblem[] };

/** Checks what was read from the text, and turns it into a document. */
export function checkSchema(raw: unknown): SchemaResult {
  const result = document.safeParse(raw, { error: messageOf, reportInput: true });
  if (result.success) return { ok: true, document: result.data satisfies ConflictMapDocument };
  return { ok: false, problems: result.error.issues.slice(0, MAX_PROBLEMS).flatMap(problemsOf) };
}

function problemsOf(issue: z.core.$ZodIssue): SchemaProblem[] {
  const at = issue.path.filter((step) => typeof step !== 'symbol');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ code: 'unknown_key', message: unknownKey(key, at), path: [...at, key] }));
  }
  if (issue.code === 'invalid_key')
    return [{ code: 'invalid_value', message: sentence(issue.issues[0]?.message ?? issue.message), path: at }];
  const missing = (issue.code === 'invalid_type' || issue.code === 'invalid_value') && issue.input === undefined;
  return [{ code: missing ? 'missing_key' : 'invalid_value', message: sentence(issue.message), path: at }];
}

/** Keys by where they stand, for hints: every step that is a name or a number is "*". */
const KNOWN_KEYS: ReadonlyMap<string, readonly string[]> = knownKeys();

function knownKeys(): Map<string, readonly string[]> {
  const kind = Object.keys(profile);
  const entryKeys = Object.keys(entry.shape);
  return new Map([
    ['', Object.keys(document.shape)],
    ['resolvers.*', ['principals', 'channel']],
    ['profiles.*', kind],
    ['kinds.*', ['pattern', 'sandbox', ...kind]],
    ...['profiles.*.actions.*', 'kinds.*.actions.*'].map((at) => [at, Object.keys(action.shape)] as const),
    ['implies.*', ['when', 'touches']],
    ['implies.*.when', ['pattern', 'access']],
    ...[
      'implies.*.touches.*',
      'sets.*.entries.*',
      'tasks.*.entries.*',
      'assertions.*.a.entries.*',
      'assertions.*.b.entries.*',
    ].map((at) => [at, entryKeys] as const),
    ['conflicts.*', ['between', 'because']],
    ['aliases.*', ['from', 'to']],
    ['sets.*', ['not_before', 'entries']],
    ['tasks.*', ['params', 'entries']],
    ['assertions.*', ['conflict', 'a', 'b']],
    ['assertions.*.a', ['entries']],
    ['assertions.*.b', ['entries']],
  ]);
}

function unknownKey(key: string, at: readonly (string | number)[]): string {
  const known =
    KNOWN_KEYS.get(at.map((step, index) => (typeof step === 'number' || isName(at, index) ? '*' : step)).join('.')) ??
    [];
  return `Unknown key ${JSON.stringify(key)}${didYouMean(key, known)} Known here: ${known.join(', ')}.`;
}

/** Whether the step is a name that the admin chose. */
function isName(at: readonly (string | number)[], index: number): boolean {
  const above = at[index - 1];
  return (
    (index === 1 && ['resolvers', 'profiles', 'sets', 'tasks'].includes(String(at[0]))) ||
    (above === 'actions' && index > 1)
  );
}

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

function messageOf(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? 'It is missing'
        : `${EXPECTED[issue.expected as string] ?? issue.expected} is expected, not ${describe(issue.input)}`;
    case 'invalid_value':
      return invalidValue(issue.input, (issue.values as unknown[]).map(String));
    case 'too_big':
      return `It is too long: at most ${issue.maximum} ${issue.origin === 'array' ? 'items' : 'characters'}`;
    case 'too_small':
      return `It is too short: at least ${issue.minimum} ${issue.origin === 'array' ? 'item' : 'character'}`;
    default:
      return undefined;
  }
}

function invalidValue(input: unknown, values: readonly string[]): string {
  if (input === undefined) return 'It is missing';
  const hint = typeof input === 'string' ? didYouMean(input, values) : '.';
  return `${typeof input === 'string' ? JSON.stringify(input) : describe(input)} is not accepted here${hint} Accepted: ${values.join(', ')}`;
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: 'text',
  object: 'a map of keys',
  record: 'a map of keys',
  array: 'a list',
  tuple: 'a list of two',
};

function describe(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  return value === '' ? 'nothing' : JSON.stringify(value);
}

function sentence(text: string): string {
  const upper = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.?]$/.test(upper) ? upper : `${upper}.`;
}
