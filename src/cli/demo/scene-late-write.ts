import type { AcquireAnswer } from './agent.js';
import type { HttpAnswer } from './http.js';
import type { Narrator } from './narrate.js';
import { gateReason, refusedBy, showFenceProblem } from './problem.js';
import { until } from './processes.js';
import type { AgentRun, Stage } from './stage.js';

const MIGRATION = 'migration/customer-1842';
/** Short, so that the wait is; renewed at every third of it, as long as the process runs. */
const HOLDER_TTL_MS = 3_000;
/** Outlives the restart of the coordinator in the second half. */
const SUCCESSOR_TTL_MS = 60_000;
const WAIT_MS = 30_000;

/** Request ids by which the last scene finds the refused writes again. */
export const LATE_WRITE = 'late-write-1';
export const LATE_WRITE_ALONE = 'late-write-2';

interface Players {
  readonly holder: AgentRun;
  readonly successor: AgentRun;
}

interface Rows {
  readonly holder: number;
  readonly successor: number;
  /** What the holder is about to write when it is paused: a new row, so that no version check could catch it. */
  readonly late: number;
}

/** Scene 2: a holder that was paused past its expiry wakes and writes with its old token (C7, T4). */
export async function lateWrite(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.title('2. The holder of a migration is paused past its expiry, wakes, and writes');
  const contract = { purpose: 'move customer 1842', allowed: [{ pattern: MIGRATION, actions: ['write_rows'] }] };
  const [holder, successor] = await Promise.all([
    stage.startAgent('run A', contract),
    stage.startAgent('run B', contract),
  ]);
  const players = { holder, successor };

  const rows = { holder: 2, successor: 3, late: 4 };
  await handOver(stage, narrator, players, rows);
  await wakeAndWrite(stage, narrator, holder, rows.late);
  await successor.release();

  narrator.say('The same again, and this time the coordinator is killed before the old holder wakes.');
  const again = { holder: 5, successor: 6, late: 7 };
  await handOver(stage, narrator, players, again);
  await stage.coordinator.kill();
  narrator.say(`SIGKILL to the coordinator (pid ${stage.coordinator.pid}). It is gone.`);
  await wakeAndWriteAlone(stage, narrator, players, again);
  await comeBack(stage, narrator, successor, again.late);
  await Promise.all([holder, successor].map(({ child }) => child.end()));
}

/** Up to where the successor has written, and the old holder stands still. */
async function handOver(stage: Stage, narrator: Narrator, { holder, successor }: Players, rows: Rows): Promise<void> {
  const first = grantedToken(await holder.acquire(MIGRATION, 'write_rows', { ttlMs: HOLDER_TTL_MS }));
  await holder.open(MIGRATION);
  const before = await writeRow(holder, rows.holder, `row-${rows.holder}`);
  narrator.observe(
    `Run A (pid ${holder.child.pid}) holds ${MIGRATION} for ${HOLDER_TTL_MS / 1_000} s at a time, with token ${first}, and wrote row ${rows.holder}.`,
    before.status === 200,
    before,
  );

  const granted = successor.acquire(MIGRATION, 'write_rows', { ttlMs: SUCCESSOR_TTL_MS, waitMs: WAIT_MS });
  let isDecided = false;
  const decided = () => {
    isDecided = true;
  };
  granted.then(decided, decided);
  await until('run B stands in the queue', async () => isDecided || (await isWaiting(stage, successor)));
  narrator.observe(
    `Run B (pid ${successor.child.pid}) asked for it too, and waits in the coordinator's queue.`,
    !isDecided,
    'it was answered at once',
  );
  await holder.child.pause();
  narrator.say('SIGSTOP to run A in the middle of its work: it stands still and renews nothing.');

  const second = grantedToken(await granted);
  narrator.observe(
    `Run A's lease expired; run B was granted the migration with a higher token, ${second}.`,
    BigInt(second) > BigInt(first),
    { first, second },
  );
  const opened = await successor.open(MIGRATION);
  const after = await writeRow(successor, rows.successor, `row-${rows.successor}`);
  narrator.observe(
    `Run B opened it at the target, which raises the guard's mark, and wrote row ${rows.successor}.`,
    opened.status === 200 && after.status === 200,
    { opened, after },
  );
}

async function wakeAndWrite(stage: Stage, narrator: Narrator, holder: AgentRun, row: number): Promise<void> {
  const answer = await wake(holder, row, LATE_WRITE);
  narrator.say(
    `SIGCONT to run A. It goes on where it stood, and writes row ${row} with its old token; the row is new, so that no version check could help.`,
  );
  showFenceProblem(narrator, answer);
  narrator.observe(
    'The target refused it: its guard calls the token stale, and the coordinator says that the lease has expired.',
    answer.status === 409 &&
      gateReason(answer, 'guard') === 'stale_token' &&
      gateReason(answer, 'coordinator') === 'expired',
    answer,
  );
  await observeAbsent(stage, narrator, row);
}

/** Nobody but the guard knows better now. */
async function wakeAndWriteAlone(
  stage: Stage,
  narrator: Narrator,
  { holder, successor }: Players,
  rows: Rows,
): Promise<void> {
  const old = await wake(holder, rows.late, LATE_WRITE_ALONE);
  narrator.say(
    `SIGCONT to run A, which writes row ${rows.late} with its old token. Nobody can ask the coordinator now.`,
  );
  showFenceProblem(narrator, old);
  narrator.observe(
    'Still refused, by the guard: it knows by itself, in the transaction of the write, that a newer holder has been here.',
    old.status === 409 &&
      refusedBy(old).includes('guard') &&
      gateReason(old, 'guard') === 'stale_token' &&
      gateReason(old, 'coordinator') === 'coordinator_unreachable',
    old,
  );
  const current = await writeRow(successor, rows.late, 'while-the-coordinator-is-down');
  showFenceProblem(narrator, current);
  narrator.observe(
    'Run B, the true holder, has the guard on its side, and must wait all the same: what cannot be decided is refused, and may be retried.',
    current.status === 503 && gateReason(current, 'guard') === 'ok' && current.body.retryable === true,
    current,
  );
  await observeAbsent(stage, narrator, rows.late);
}

async function comeBack(stage: Stage, narrator: Narrator, successor: AgentRun, row: number): Promise<void> {
  await stage.restartCoordinator();
  narrator.say(
    `The coordinator is started again (pid ${stage.coordinator.pid}), on the same data. Run B sends its write again.`,
  );
  let answer: HttpAnswer | undefined;
  await until('the target reaches the coordinator again', async () => {
    answer = await writeRow(successor, row, 'after-the-restart');
    return answer.status !== 503;
  });
  narrator.observe(
    `Run B wrote row ${row} with the same lease and token: the kill lost nothing that was granted.`,
    answer?.status === 200,
    answer,
  );
  await successor.release();
}

/** The write is given to it while it stands still, as one that it had already begun. */
async function wake(holder: AgentRun, row: number, requestId: string): Promise<HttpAnswer> {
  const late = writeRow(holder, row, 'too-late', requestId);
  holder.child.resume();
  return late;
}

function writeRow(run: AgentRun, row: number, requestId: string, id = requestId): Promise<HttpAnswer> {
  const body = { account: `1842-${row}`, plan: 'new', written_by: run.name };
  return run.write(MIGRATION, {
    path: `${MIGRATION}/rows/${row}`,
    condition: { ifNoneMatch: '*' },
    body,
    requestId: id,
  });
}

async function observeAbsent(stage: Stage, narrator: Narrator, row: number): Promise<void> {
  const found = await stage.look(`${MIGRATION}/rows/${row}`);
  narrator.observe(`Row ${row} is not there: nothing was written.`, found.status === 404, found);
}

async function isWaiting(stage: Stage, { runId }: AgentRun): Promise<boolean> {
  const { run } = await stage.as('operator').run.getRun({ runId });
  return (run?.waitingRequests ?? 0) > 0;
}

function grantedToken(answer: AcquireAnswer): string {
  const token = 'granted' in answer ? answer.granted.entries[0]?.token : undefined;
  if (token === undefined) throw new Error(`${MIGRATION} was not granted: ${JSON.stringify(answer)}`);
  return token;
}
