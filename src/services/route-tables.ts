import { readFile, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import type { Logger } from '../platform/log.js';
import { LOOK_EVERY_MS, type WatchedFiles, watchFiles } from '../platform/watched-files.js';
import { parseRouteTable, type RouteTable, RouteTableError } from '../route-table/index.js';

/** The routes of one target service, and the namespace that its writes are in. */
export interface TargetRoutes {
  readonly namespace: string;
  readonly table: RouteTable;
}

/** The routes file, or one that it names, cannot be used; one line per problem, each with file and field. */
export class RoutesFileError extends Error {
  override readonly name = 'RoutesFileError';
}

export interface RouteTablesOptions {
  /** WRIT_ROUTES_FILE; null: no gateway has routes. */
  readonly file: string | null;
  readonly log: Logger;
  /** How often the files are looked at for a change. */
  readonly lookEveryMs?: number;
}

/**
 * The route tables of the services that stand behind gateways: read at the start, and again whenever a file changes. A
 * change takes effect as a whole for the checks that begin after it; files that cannot be used are logged, and the tables
 * before stay in force.
 */
export class RouteTables {
  readonly #options: RouteTablesOptions;
  #loaded: Loaded = { files: [], shared: null, byTarget: new Map() };
  #watched: WatchedFiles | undefined;

  constructor(options: RouteTablesOptions) {
    this.#options = options;
  }

  /** Reads the files, and looks for changes from then on; throws a RoutesFileError. */
  async start(): Promise<void> {
    const { file, lookEveryMs = LOOK_EVERY_MS } = this.#options;
    if (file === null) return;
    this.#loaded = await loadRoutes(file);
    this.#watched = watchFiles(this.#loaded.files, () => this.#reload(file), lookEveryMs);
  }

  stop(): void {
    this.#watched?.stop();
  }

  /** The routes that a principal may ask about: its own service's; null: none. */
  of(principal: string): TargetRoutes | null {
    return this.#loaded.byTarget.get(principal) ?? this.#loaded.shared;
  }

  async #reload(file: string): Promise<void> {
    const { log } = this.#options;
    try {
      this.#loaded = await loadRoutes(file);
      this.#watched?.set(this.#loaded.files);
      log.info({ targets: this.#loaded.byTarget.size }, 'routes file reloaded');
    } catch (error) {
      log.error({ detail: (error as Error).message }, 'the new routes file is not used');
    }
  }
}

/** The tables of a routes file. */
export interface Loaded {
  /** Absolute. */
  readonly files: readonly string[];
  /** A file that is one table: for every target. */
  readonly shared: TargetRoutes | null;
  readonly byTarget: ReadonlyMap<string, TargetRoutes>;
}

const MAX_BYTES = 4 << 20;
const MAX_TARGETS = 1_000;
const MAX_ALIASES = 100;
const DEFAULT_NAMESPACE = 'default';

/** Several services: the table of each by the name of its principal, written there or in a file of its own. */
const targetsSchema = z.strictObject({
  version: z.literal(1, { error: 'must be 1' }),
  targets: z
    .record(
      z.string().min(1).max(512),
      z.strictObject({
        namespace: z.string().min(1).max(128).exactOptional(),
        table: z.union([z.string().min(1).max(4_096), z.looseObject({})], {
          error: 'must be a route table, or the name of a file with one',
        }),
      }),
    )
    .refine((targets) => Object.keys(targets).length <= MAX_TARGETS, { error: `must be at most ${MAX_TARGETS}` }),
});

/** Reads the file and those that it names; throws a RoutesFileError. */
export async function loadRoutes(file: string): Promise<Loaded> {
  const document = parseYaml(await readBounded(file), file);
  if (typeof document !== 'object' || document === null || !Object.hasOwn(document, 'targets')) {
    const shared = { namespace: DEFAULT_NAMESPACE, table: tableOf(document, file, '') };
    return { files: [file], shared, byTarget: new Map() };
  }
  const parsed = targetsSchema.safeParse(document);
  if (!parsed.success) {
    const lines = parsed.error.issues.map(
      ({ path, message }) => `${file}: ${path.join('.') || 'the file'}: ${message}`,
    );
    throw new RoutesFileError(lines.join('\n'));
  }
  const files = new Set([file]);
  const byTarget = new Map<string, TargetRoutes>();
  for (const [target, { namespace = DEFAULT_NAMESPACE, table }] of Object.entries(parsed.data.targets)) {
    if (typeof table !== 'string') {
      byTarget.set(target, { namespace, table: tableOf(table, file, `targets.${target}.table.`) });
      continue;
    }
    const other = resolve(dirname(file), table);
    files.add(other);
    byTarget.set(target, { namespace, table: tableOf(parseYaml(await readBounded(other), other), other, '') });
  }
  return { files: [...files], shared: null, byTarget };
}

function tableOf(document: unknown, file: string, prefix: string): RouteTable {
  try {
    const table = parseRouteTable(document);
    const unseen = table.routes.filter(({ fields }) => fields.length > 0);
    if (unseen.length === 0) return table;
    // A target of its own kit reads the message; a gateway tells of method, host and path.
    const message = 'a gateway does not see the fields of the request';
    throw new RouteTableError(unseen.map(({ index }) => ({ path: `routes[${index}].fields`, message })));
  } catch (error) {
    if (!(error instanceof RouteTableError)) throw error;
    const lines = error.problems.map(({ path, message }) => `${file}: ${prefix}${path || 'the document'}: ${message}`);
    throw new RoutesFileError(lines.join('\n'), { cause: error });
  }
}

/** JSON is YAML too. */
function parseYaml(text: string, file: string): unknown {
  const document = parseDocument(text, { logLevel: 'error' });
  const [wrong] = document.errors;
  if (wrong !== undefined) throw new RoutesFileError(`${file}: is not YAML (${wrong.message})`, { cause: wrong });
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    throw new RoutesFileError(`${file}: cannot be used (${(error as Error).message})`, { cause: error });
  }
}

async function readBounded(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size <= MAX_BYTES) return await readFile(file, 'utf8');
  } catch (error) {
    throw new RoutesFileError(`${file}: cannot be read (${(error as Error).message})`, { cause: error });
  }
  throw new RoutesFileError(`${file}: is larger than ${MAX_BYTES} bytes`);
}
