import { setTimeout as pause } from 'node:timers/promises';
import { Breach, NotApplicable, Undecided } from '../result.js';
import type { SentWrite } from '../run.js';
import type { Case, Stage } from '../stage.js';
import { isAccepted, type Snapshot, shown } from '../target.js';

/**
 * A write that was let in, and is not done yet, while the resource goes over to the next holder (C7). The gap between a
 * check and a commit is there in every service; these cases stand a write of A still inside it.
 *
 * Three ways to do that: the suite's proxy keeps the coordinator's verdict on its way (`verdict`), or the service waits
 * by a hook of its own after its checks (`after_check`) or as the last thing before its commit (`before_commit`).
 */
const WAYS = ['verdict', 'after_check', 'before_commit'] as const;

type Way = (typeof WAYS)[number];

/**
 * A guard that holds its lock while A stands still keeps B waiting, which is right: then A is let go. Short for a verdict,
 * since services do not wait long for one.
 */
const PATIENCE_MS: Readonly<Record<Way, number>> = { verdict: 1_000, after_check: 3_000, before_commit: 3_000 };
const REACH_MS = 10_000;

interface Standing {
  readonly answer: Promise<SentWrite>;
  letGo(): void;
}

/** Sends A's write, and returns when it stands still in the gap. */
async function standStill(stage: Stage, way: Way, readByA: Snapshot): Promise<Standing> {
  const { held, headers } = arrange(stage, way);
  const answer = stage.a.write('late', readByA, { headers, standsStill: true });
  answer.catch(() => undefined);
  try {
    const first = await Promise.race([
      held.reached.then(() => 'standing' as const),
      answer,
      pause(REACH_MS, 'time' as const),
    ]);
    if (first === 'time') throw new Undecided(`A's write came neither to its standstill (${way}) nor to an answer`);
    if (first !== 'standing') {
      const why = `A's write was answered (${shown(first)}) and never stood still`;
      if (way !== 'verdict') throw new Undecided(`${why}: does the service know the hook pause.${way}?`);
      throw new NotApplicable(`${why}: the service did not ask the coordinator through the proxy about it`);
    }
  } catch (error) {
    held.letGo();
    throw error;
  }
  stage.say(`A's write has been let in, and stands still (${way})`);
  return { answer, letGo: () => held.letGo() };
}

function arrange(stage: Stage, way: Way) {
  const { a, config, pauses, proxy } = stage;
  if (way === 'verdict') {
    if (proxy === undefined)
      throw new NotApplicable(
        'the suite stands not between the service and the coordinator (coordinator.proxy, http_proxy)',
      );
    const { leaseId, credential } = a;
    const held = proxy.holdVerdict((question) =>
      question.credential === '' ? question.leaseId === leaseId : question.credential === credential,
    );
    return { held, headers: {} };
  }
  const hook = config.pause?.[way];
  if (hook === undefined || pauses === undefined)
    throw new NotApplicable(`the service has no hook to wait by (pause.${way})`);
  const held = pauses.arrange();
  return { held, headers: { [hook.header.toLowerCase()]: held.url } };
}

/** How B's side of a hand-over went. */
interface TakeOver {
  readonly seenByB: Snapshot;
  /** B had to wait for A's write, which was let go for that: they came out in order. */
  readonly waited: boolean;
}

/** A's write stands still; B takes over, does what `then` says, and A's write goes on. */
async function handOver(
  stage: Stage,
  way: Way,
  then: (readByB: Snapshot) => Promise<Snapshot>,
): Promise<TakeOver & { readonly answer: SentWrite; readonly now: Snapshot }> {
  const { a, b } = stage;
  const isAlone = a.isAlone;
  const standing = await standStill(stage, way, await a.read());
  try {
    if (isAlone) await a.letGo();
    const granted = b.hold({ open: false });
    granted.catch(() => undefined);
    // A lock delay is no sign of A's write; of a tracked one the coordinator grants nobody anything while it is open.
    const isKept = !stage.decidesAlone && (await hasToWait(granted, way));
    if (isKept) {
      stage.say("B is not granted it while A's write is under way; A goes on");
      standing.letGo();
    }
    await granted;
    const takeOver = (async () => {
      if (isAlone) await b.open();
      return then(await b.read());
    })();
    takeOver.catch(() => undefined);
    const isBlocked = await hasToWait(takeOver, way);
    if (isBlocked && !isKept) stage.say("B has to wait for A's write, whose lock is held until it is done; A goes on");
    standing.letGo();
    const answer = await standing.answer;
    return { seenByB: await takeOver, waited: isKept || isBlocked, answer, now: await b.read() };
  } finally {
    standing.letGo();
    await standing.answer.catch(() => undefined);
  }
}

/** Whether it is still not done when patience ends. */
async function hasToWait(work: Promise<unknown>, way: Way): Promise<boolean> {
  const patience = new AbortController();
  const late = pause(PATIENCE_MS[way], true, { signal: patience.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => false), late]);
  } finally {
    patience.abort();
  }
}

/**
 * Whether B waits for a lock or the machine is slow cannot be told apart, and a verdict cannot be kept for long: after a
 * wait the case is played again.
 */
async function severalTimes(way: Way, play: () => Promise<boolean>): Promise<void> {
  for (let left = way === 'verdict' ? 3 : 1; left > 0; left -= 1) if (!(await play())) return;
}

const writePastWrite = (way: Way): Case => ({
  name: `write_past_write:${way}`,
  title: `A's write stands still on its way (${way}); B takes over and writes; A's write goes on`,
  proves: ['T4', 'C7', 'W1'],
  play: (stage) =>
    severalTimes(way, async () => {
      const { a, b } = stage;
      await a.hold();
      let byB: SentWrite | undefined;
      const { seenByB, waited, answer, now } = await handOver(stage, way, async (readByB) => {
        byB = await b.write('b', readByB);
        return b.read();
      });
      await Promise.all([a.letGo(), b.letGo()]);
      // After a wait A's write came first, and B's was from a version that had passed: either may have been refused.
      if (waited) return true;
      if (byB === undefined || !isAccepted(byB))
        throw new Undecided(`B's write, which is in order, was refused: ${byB === undefined ? '' : shown(byB)}`);
      if (!same(now, seenByB))
        throw new Breach(
          `A's write was let in before B took over, and landed after B had written: version ${String(seenByB.version)} became ${String(now.version)}, and A was told ${shown(answer)}`,
        );
      if (isAccepted(answer)) throw new Breach(`A was told ${shown(answer)}, and its write is not there`);
      return false;
    }),
});

const writePastOpen = (way: Way): Case => ({
  name: `write_past_open:${way}`,
  title: `A's write stands still on its way (${way}); B takes over, opens and reads; A's write goes on`,
  proves: ['C7'],
  play: (stage) =>
    severalTimes(way, async () => {
      const { a, b, resource } = stage;
      await a.hold();
      if (!a.isAlone) throw new NotApplicable('the action is optimistic: nobody opens it');
      const { seenByB, waited, answer, now } = await handOver(stage, way, async (readByB) => readByB);
      await Promise.all([a.letGo(), b.letGo()]);
      if (same(now, seenByB)) return waited;
      const opens =
        resource.open === undefined ? ' The configuration names no `open`, by which a guard would know.' : '';
      throw new Breach(
        `A's write was let in before B took over, and landed after B had opened and read: B works on what is not there any more. A was told ${shown(answer)}.${opens}`,
      );
    }),
});

function same(a: Snapshot, b: Snapshot): boolean {
  return JSON.stringify([a.version, a.content]) === JSON.stringify([b.version, b.content]);
}

export const inFlight: readonly Case[] = WAYS.flatMap((way) => [writePastOpen(way), writePastWrite(way)]);
