import type { Narrator } from './narrate.js';
import { gateReason, member, showFenceProblem } from './problem.js';
import type { Stage } from './stage.js';

const POINTER = 'release/prod-eu';
const UNDECLARED = 'migration/customer-1842';
const TTL_MS = 60_000;

export const UNDECLARED_WRITE = 'undeclared-write';
export const WRITE_AFTER_STOP = 'write-after-stop';

/** Scene 4: a write that was never declared, and one of a run that was stopped (C10, P4, R4). */
export async function authority(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.title('4. An undeclared write, and a stopped run');
  const contract = {
    purpose: 'promote a release',
    allowed: [
      { pattern: 'release/{env}', actions: ['promote'] },
      { pattern: 'migration/{customer}', actions: ['write_rows'] },
    ],
  };
  const run = await stage.startAgent('run D', contract);
  const grant = await run.acquire(POINTER, 'promote', { ttlMs: TTL_MS });
  await run.open(POINTER);
  const { etag } = await run.read(POINTER);
  const promoted = await run.write(POINTER, {
    condition: { ifMatch: etag },
    body: { image: 'shop:1.9.0' },
    requestId: 'promote',
  });
  narrator.observe(
    `Run D (pid ${run.child.pid}) holds ${POINTER}, and promoted it to shop:1.9.0, version ${promoted.etag}.`,
    'granted' in grant && promoted.status === 200,
    { grant, promoted },
  );

  narrator.say(`With that lease it writes a row of ${UNDECLARED}, which it may ask for, and did not.`);
  const undeclared = await run.write(UNDECLARED, {
    path: `${UNDECLARED}/rows/99`,
    condition: { ifNoneMatch: '*' },
    body: { account: '1842-z' },
    requestId: UNDECLARED_WRITE,
  });
  showFenceProblem(narrator, undeclared);
  narrator.observe(
    'The undeclared write was refused: the lease does not cover the resource.',
    undeclared.status === 403 && gateReason(undeclared, 'coordinator') === 'not_covered',
    undeclared,
  );

  const stopped = await stage.as('operator').run.stopRun({ runId: run.runId, reason: 'the release is called off' });
  narrator.say('An operator stops run D. Its process runs on, and promotes again.');
  const late = await run.write(POINTER, {
    condition: { ifMatch: promoted.etag },
    body: { image: 'shop:1.9.1' },
    requestId: WRITE_AFTER_STOP,
  });
  showFenceProblem(narrator, late);
  narrator.observe(
    "The stopped run's next write was refused, although its token is the newest and its version is the current one.",
    late.status === 409 && gateReason(late, 'coordinator') === 'run_stopped' && gateReason(late, 'guard') === 'ok',
    { stopped: stopped.run?.state, late },
  );
  narrator.observe(
    'It was told what it can still do: nothing of its own, and whom to ask.',
    member(late, 'next').includes('it gets no new lease'),
    member(late, 'next'),
  );
  const now = await stage.look(POINTER);
  narrator.observe(`${POINTER} is still at version ${promoted.etag}.`, now.etag === promoted.etag, now);
  const anew = await run.acquire(POINTER, 'promote', { ttlMs: TTL_MS });
  narrator.observe(
    `And it gets no new lease: ${'refused' in anew ? anew.refused.kind : 'granted'}.`,
    'refused' in anew && anew.refused.kind === 'run_ended',
    anew,
  );
  await run.child.end();
}
