import { parseDocument } from 'yaml';
import { z } from 'zod';
import { CHANGE_CLASSES } from '../route-table/index.js';
import { POINTER } from './json-pointer.js';
import { placesInJson } from './template.js';

/**
 * How to speak to a service under rehearsal: a closed YAML document (docs/rehearsals.md). Everything that is wrong with
 * it is said at once, each with its path.
 */

/** What the places of a template may name, by where the template stands. */
const OF_RUN = ['run_id', 'lease', 'token', 'credential', 'secret', 'request_id'] as const;
const OF_READ = [...OF_RUN, 'unique'] as const;
const OF_WRITE = [...OF_READ, 'etag', 'version', 'content', 'idempotency_key'] as const;
const OF_COMMAND = ['run_id', 'lease', 'token'] as const;

const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };
const MAX_RESOURCES = 32;
const MAX_HEADERS = 64;

const line = z.string().min(1).max(1_024);
const pointer = z.string().max(1_024).regex(POINTER, 'must be a JSON pointer, such as /policy/version');
const header = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'must be the name of a header');
const address = z
  .string()
  .regex(/^(?:[^\s:/]+|\[[0-9a-fA-F:]+\]):\d{1,5}$/, 'must be host:port, such as 127.0.0.1:17410');

const duration = z
  .string()
  .regex(/^\d{1,6}(?:ms|s|m)$/, 'must be a duration, such as 500ms, 10s or 2m')
  .transform((text) => {
    const [, count = '', unit = ''] = /^(\d+)(\D+)$/.exec(text) ?? [];
    return Number(count) * (MS_PER_UNIT[unit] ?? 0);
  });

function checkPlaces(value: unknown, known: readonly string[], context: z.RefinementCtx): void {
  for (const { path, names } of placesInJson(value)) {
    for (const name of names) {
      if (known.includes(name)) continue;
      const message = `{${name}} is not known here; there are ${known.map((one) => `{${one}}`).join(', ')}`;
      context.addIssue({ code: 'custom', path: [...path], message });
    }
  }
}

const template = (known: readonly string[]) =>
  z
    .string()
    .max(8_192)
    .superRefine((text, context) => checkPlaces(text, known, context));

const json = (known: readonly string[]) =>
  z.unknown().superRefine((value, context) => checkPlaces(value, known, context));

const path = (known: readonly string[]) => template(known).regex(/^\//, 'must begin with a slash');

/** null: left out, where what it is merged into has one. */
const headers = (known: readonly string[]) =>
  z
    .record(header, z.union([template(known), z.null()]))
    .refine((given) => Object.keys(given).length <= MAX_HEADERS, `at most ${MAX_HEADERS} headers`)
    .transform((given) => Object.fromEntries(Object.entries(given).map(([name, text]) => [name.toLowerCase(), text])));

const method = z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

const change = z.strictObject({
  method: method.optional(),
  path: path(OF_WRITE).optional(),
  headers: headers(OF_WRITE).optional(),
  body: json(OF_WRITE).optional(),
});

const command = z.array(template(OF_COMMAND).min(1)).min(1).max(64);

const resource = z.strictObject({
  resource: line,
  action: line,
  change_class: z.enum(CHANGE_CLASSES),
  prepare: z
    .strictObject({
      method,
      path: path(['unique']),
      headers: headers(['unique']).optional(),
      body: json(['unique']).optional(),
    })
    .optional(),
  open: z
    .strictObject({
      method: method.default('POST'),
      path: path(OF_READ),
      headers: headers(OF_READ).optional(),
      body: json(OF_READ).optional(),
    })
    .optional(),
  read: z.strictObject({
    path: path(OF_READ),
    headers: headers(OF_READ).optional(),
    version: z.union([z.literal('etag'), pointer.regex(/^\//, 'must be etag or a JSON pointer')]).default('etag'),
    content: pointer.default(''),
  }),
  write: z.strictObject({ method, path: path(OF_WRITE), headers: headers(OF_WRITE).default({}) }),
  changes: z.strictObject({
    a: change,
    b: change,
    replace: change.optional(),
    add: change.extend({ action: line.optional() }).optional(),
    late: change.optional(),
  }),
  elsewhere: z.strictObject({ resource: line, action: line }).optional(),
  gaps: z.record(z.string(), line).optional(),
});

const secret = z.union([z.strictObject({ command }), z.strictObject({ value: line })]);
const pauseHook = z.strictObject({ header });

const document = z.strictObject({
  version: z.literal(1),
  target: z.strictObject({
    name: z.string().regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 printable ASCII characters without spaces'),
    headers: headers([]).default({}),
    timeout: duration.default(10_000),
  }),
  coordinator: z
    .strictObject({
      proxy: z.strictObject({ listen: address }).optional(),
      http_proxy: z.strictObject({ listen: address, upstream: address }).optional(),
      unreachable: z.strictObject({ command }).optional(),
      reachable: z.strictObject({ command }).optional(),
    })
    .refine((given) => (given.unreachable === undefined) === (given.reachable === undefined), {
      message: 'unreachable and reachable go together: what is taken away must be given back',
    })
    .refine((given) => given.proxy === undefined || given.http_proxy === undefined, {
      message: 'give one of proxy and http_proxy: the service asks over gRPC, or its gateway over HTTP',
    })
    .default({}),
  runs: z.strictObject({
    headers: headers(OF_RUN),
    secret: secret.optional(),
    audience: line.optional(),
    short_ttl: duration.optional(),
  }),
  pause: z
    .strictObject({
      listen: address.default('127.0.0.1:0'),
      after_check: pauseHook.optional(),
      before_commit: pauseHook.optional(),
    })
    .optional(),
  problem: z
    .strictObject({
      retryable: pointer.default('/retryable'),
      next: pointer.default('/next'),
      resolver: pointer.default('/resolver'),
      expected: pointer.default('/expected_version'),
      current: pointer.default('/current_version'),
    })
    .prefault({}),
  own_record: z
    .strictObject({
      path: path(['request_id']),
      headers: headers(OF_RUN).optional(),
      run: pointer,
    })
    .optional(),
  resources: z.array(resource).min(1).max(MAX_RESOURCES),
});

export type RehearsalConfig = z.output<typeof document>;
export type ResourceConfig = RehearsalConfig['resources'][number];
export type ChangeConfig = ResourceConfig['changes']['a'];
export type ChangeName = keyof ResourceConfig['changes'];
export type HeaderTemplates = Readonly<Record<string, string | null>>;

/** What is wrong with a configuration, each with the path of the value. */
export class RehearsalConfigError extends Error {
  override readonly name = 'RehearsalConfigError';

  constructor(readonly problems: readonly { readonly path: string; readonly message: string }[]) {
    super(problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n'));
  }
}

/**
 * Reads a configuration, or throws a RehearsalConfigError that names all that is wrong.
 *
 * @example
 * const config = parseRehearsalConfig(await readFile('rehearsal.yaml', 'utf8'));
 */
export function parseRehearsalConfig(text: string): RehearsalConfig {
  const yaml = parseDocument(text, { prettyErrors: true, strict: true, uniqueKeys: true });
  if (yaml.errors.length > 0)
    throw new RehearsalConfigError(
      yaml.errors.map(({ message }) => ({ path: '', message: message.split('\n')[0] ?? '' })),
    );
  const parsed = document.safeParse(yaml.toJS({ maxAliasCount: 100 }));
  const problems = parsed.success ? consistency(parsed.data) : parsed.error.issues.flatMap(problemsOf);
  if (!parsed.success || problems.length > 0) throw new RehearsalConfigError(problems);
  return parsed.data;
}

function problemsOf(issue: z.core.$ZodIssue): { path: string; message: string }[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      path: pathText([...issue.path, key]),
      message: 'is not a key that is known here',
    }));
  return [{ path: pathText(issue.path), message: issue.message }];
}

/** What only the whole can say. */
function consistency(config: RehearsalConfig): { path: string; message: string }[] {
  const problems: { path: string; message: string }[] = [];
  const uses = (name: string) =>
    placesInJson([config.runs.headers, config.resources]).some(({ names }) => names.includes(name));
  if (uses('secret') && config.runs.secret === undefined)
    problems.push({ path: 'runs.secret', message: 'is needed, since a template says {secret}' });
  if (uses('credential') && config.runs.audience === undefined)
    problems.push({ path: 'runs.audience', message: 'is needed, since a template says {credential}' });
  const presents = ['lease', 'credential'].some((name) =>
    placesInJson(config.runs.headers).some(({ names }) => names.includes(name)),
  );
  if (!presents)
    problems.push({
      path: 'runs.headers',
      message: 'must present what the run holds: {lease} with {token}, or {credential}',
    });
  config.resources.forEach(({ resource: name, action }, index) => {
    if (config.resources.findIndex((other) => other.resource === name && other.action === action) !== index)
      problems.push({ path: `resources[${index}].resource`, message: `${name} with this action is there already` });
  });
  return problems;
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, step) =>
      typeof step === 'number' ? `${text}[${step}]` : text === '' ? String(step) : `${text}.${String(step)}`,
    '',
  );
}
