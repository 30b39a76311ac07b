import type { ConflictMapDocument, DocumentKind } from '../../../src/domain/conflict-map/document.js';
import { compileStored } from '../../../src/domain/conflict-map/index.js';
import { type Bounds, DEFAULT_BOUNDS } from '../../../src/domain/decide/decision.js';
import type { OnLiveConflict } from '../../../src/domain/decide/put-map.js';
import { Reexpansion } from '../../../src/domain/decide/reexpansion.js';
import { SECOND } from '../../../src/domain/time.js';
import { START } from '../domain.js';
import { universeOf } from '../oracle/write-sets.js';

/** What there is in the world: a namespace, its maps one after another, and the resources that are asked for. */

export const NAMESPACE = 'sim';

const ACTIONS = {
  replace: { access: 'write', concurrency: 'lease' },
  patch: { access: 'write' },
} as const;
/** What a target must report (R4). */
const TRACKED = {
  replace: { access: 'write', concurrency: 'lease', tracked: true },
  patch: { access: 'write', tracked: true },
} as const;
const SHORT = { ttl: 8 * SECOND, max_ttl: 16 * SECOND, max_hold: 40 * SECOND } as const;

const BASE: ConflictMapDocument = {
  version: 1,
  kinds: [
    { pattern: 'svc/{n}', ...SHORT, progress_window: 20 * SECOND, actions: TRACKED },
    { pattern: 'svc/{n}/{part}', ...SHORT, actions: TRACKED },
    { pattern: 'tok/{n}', ...SHORT, actions: TRACKED },
    { pattern: 'cfg/{n}', ...SHORT, actions: TRACKED },
    { pattern: 'obs/{n}', ...SHORT, mode: 'observe', actions: ACTIONS },
    { pattern: 'loc/{n}', ...SHORT, validation: 'local', actions: ACTIONS },
    { pattern: 'vw/{n}', ...SHORT, validation: 'view', max_view_age: 4 * SECOND, actions: ACTIONS },
  ],
  implies: [
    {
      when: { pattern: 'svc/{n}', access: 'write' },
      touches: [{ resource: 'cfg/{n}', access: 'stable_read' }],
    },
  ],
  sets: {
    soon: {
      not_before: START + 20 * SECOND,
      entries: [
        { resource: 'svc/a', access: 'write', actions: ['replace'] },
        { resource: 'tok/b', access: 'write', actions: ['patch'] },
      ],
    },
  },
};

/** Credentials of a small world: its leases are short, too. */
export const CREDENTIALS = { credentialLife: 6 * SECOND, credentialTolerance: SECOND, maxClockSkew: SECOND } as const;
export const BOUNDS: Bounds = { ...DEFAULT_BOUNDS, ...CREDENTIALS };

/** By these nothing is accepted for long after the end of a lease. */
export const CARELESS: Bounds = { ...BOUNDS, credentialLife: -SECOND, credentialTolerance: 0, maxClockSkew: -SECOND };

/** Kinds of tokens become local, and those that were are no more; those of configurations are looked at by older views. */
const TURNED = (BASE.kinds ?? []).map((kind): DocumentKind => {
  if (kind.pattern === 'tok/{n}') return { ...kind, validation: 'local' };
  if (kind.pattern === 'cfg/{n}') return { ...kind, validation: 'view', max_view_age: 3 * SECOND };
  if (kind.pattern === 'vw/{n}') return { ...kind, max_view_age: SECOND };
  return kind.pattern === 'loc/{n}' ? { ...kind, validation: 'introspect' } : kind;
});

const RULES: NonNullable<ConflictMapDocument['conflicts']> = [
  { between: ['tok/{n}', 'cfg/{n}'] },
  { between: ['loc/{n}', 'cfg/{n}'] },
  { between: ['tok/{n}', 'obs/{n}'] },
];

/** Each ties more than the one before, but for the last: what was tied by a rule stays so when the rule is gone. */
export const DOCUMENTS: readonly ConflictMapDocument[] = [
  BASE,
  { ...BASE, conflicts: RULES.slice(0, 2) },
  { ...BASE, kinds: TURNED, conflicts: RULES },
  {
    ...BASE,
    implies: [
      ...(BASE.implies ?? []),
      {
        when: { pattern: 'tok/{n}', access: 'write' },
        touches: [{ resource: 'svc/{n}/key', access: 'write', actions: ['patch'] }],
      },
    ],
    conflicts: RULES,
  },
  { ...BASE, conflicts: RULES.slice(1) },
];

export const PATHS = [
  'svc/a',
  'svc/b',
  'svc/a/',
  'svc/',
  'svc/a/key',
  'svc/b/x',
  'tok/a',
  'tok/b',
  'cfg/a',
  'cfg/b',
  'obs/a',
  'loc/a',
  'loc/b',
  'loc/',
  'vw/a',
  'vw/',
];
/** What operators freeze now and then. */
export const FREEZABLE = [
  'svc/{n}',
  'svc/a',
  'svc/{n}/{part}',
  'tok/{n...}',
  'cfg/a',
  'loc/{n}',
  'loc/a',
  'obs/{n}',
  'svc',
];
export const UNIVERSE = universeOf([
  ...PATHS.map((path) => path.replace(/\/$/, '')),
  ...['svc/b/key', 'svc/a/x', 'obs/b', 'cfg', 'tok', 'loc', 'vw', 'vw/b'],
  // Below what is held as a subtree, as parts of it are asked for.
  ...['svc/a/a', 'svc/a/b', 'svc/a/a/key', 'loc/a/key', 'vw/a/key'],
]);

/** One after another; from the last on, one and another again. */
export function mapAfter(version: number): ConflictMapDocument {
  const last = DOCUMENTS.length - 1;
  const at = version <= last ? version : last - ((version - last) % 3);
  return DOCUMENTS[at] as ConflictMapDocument;
}

export function putMap(document: ConflictMapDocument, expectedVersion: number, onLiveConflict: OnLiveConflict) {
  return {
    text: '',
    document,
    reexpansion: new Reexpansion(compileStored(document)),
    expectedVersion,
    reason: '',
    onLiveConflict,
    requestIds: [],
  };
}
