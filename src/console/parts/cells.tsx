import type { LeaseEntry } from '../api/shapes.js';
import { codeOf } from '../pure/words.js';
import { LeaseLink, Resource, RunLink } from './text.js';

/** Cells that several tables have. */

export function LeaseOfRun({ leaseId, runId }: { readonly leaseId: string; readonly runId: string }) {
  return (
    <>
      <LeaseLink id={leaseId} />
      <div class="aside">
        run <RunLink id={runId} />
      </div>
    </>
  );
}

/** The first resource, and how many there are besides. */
export function FirstResource({ names }: { readonly names: readonly string[] }) {
  return (
    <>
      <Resource name={names[0] ?? ''} />
      {names.length > 1 && <span class="aside"> and {names.length - 1} more</span>}
    </>
  );
}

/** What an entry is about. */
export function Covered({
  entry: { resource = '', scope },
}: {
  readonly entry: Pick<LeaseEntry, 'resource' | 'scope'>;
}) {
  return (
    <>
      <Resource name={resource} />
      {codeOf(scope, 'SCOPE') === 'SUBTREE' && <div class="aside">and everything below</div>}
    </>
  );
}
