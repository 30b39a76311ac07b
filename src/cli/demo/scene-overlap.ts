import type { AcquireAnswer, RefusalView } from './agent.js';
import { IMPLIED_BY_DEPLOYMENT } from './conflict-map.js';
import { inSeconds, type Narrator, timeOfDay } from './narrate.js';
import type { Stage } from './stage.js';

const TTL_MS = 30_000;

/** Scene 1: one write set overlaps another only by a rule of the map; independent work goes on beside it (C3, C5, C11). */
export async function overlap(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.title('1. Two runs want overlapping write sets');
  const rollOut = {
    purpose: 'update an environment',
    allowed: [
      { pattern: 'deployment/{env}', actions: ['roll_out'] },
      ...IMPLIED_BY_DEPLOYMENT.map((kind) => ({ pattern: `${kind}/{env}`, actions: ['*'] })),
    ],
  };
  const [a, b, c] = await Promise.all([
    stage.startAgent('run A', rollOut),
    stage.startAgent('run B', { purpose: 'move traffic', allowed: [{ pattern: 'route/{env}', actions: ['reroute'] }] }),
    stage.startAgent('run C', rollOut),
  ]);

  narrator.say(`Run A (pid ${a.child.pid}) asks for one resource: deployment/staging.`);
  const first = await a.acquire('deployment/staging', 'roll_out', { ttlMs: TTL_MS });
  showGrant(narrator, first);
  const implied = entriesOf(first).filter((entry) => entry.impliedBy === 'implies[0]');
  narrator.observe(
    "Run A was granted it together with the six that the map's rule implies[0] brings: image tag, pointer, route, DNS record, journal and channel.",
    IMPLIED_BY_DEPLOYMENT.every((kind) =>
      implied.some((entry) => entry.resource === `${kind}/staging` && entry.token !== '0'),
    ),
    first,
  );

  narrator.say(`Run B (pid ${b.child.pid}) asks for route/staging. It never heard of the deployment.`);
  const second = await b.acquire('route/staging', 'reroute', { ttlMs: TTL_MS });
  narrator.observe('Run B was refused.', 'refused' in second, second);
  showRefusal(narrator, second.refused);
  const [blocker] = second.refused.blockers;
  narrator.observe(
    'It was told by which rule, until when, what to do and who can do it; and not who the other run is.',
    second.refused.kind === 'held' &&
      blocker?.rule === 'implies[0]' &&
      blocker.expiresAtMicros !== null &&
      second.refused.action !== '' &&
      second.refused.who !== '' &&
      !JSON.stringify(second).includes(a.runId),
    second,
  );

  narrator.say(`Run C (pid ${c.child.pid}) asks for deployment/qa: the same work in another environment.`);
  const third = await c.acquire('deployment/qa', 'roll_out', { ttlMs: TTL_MS });
  narrator.observe(
    `Run C was granted all ${entriesOf(third).length} entries at once, without waiting: disjoint work meets nobody.`,
    entriesOf(third).length === IMPLIED_BY_DEPLOYMENT.length + 1,
    third,
  );
  await Promise.all([a.release(), c.release()]);
  await Promise.all([a, b, c].map(({ child }) => child.end()));
}

function entriesOf(answer: AcquireAnswer) {
  return 'granted' in answer ? answer.granted.entries : [];
}

function showGrant(narrator: Narrator, answer: AcquireAnswer): void {
  narrator.facts(
    Object.fromEntries(
      entriesOf(answer).map(({ resource, actions, token, impliedBy }) => [
        resource,
        `${actions.join(', ')}; token ${token}; ${impliedBy === '' ? 'asked for' : `by rule ${impliedBy}`}`,
      ]),
    ),
  );
}

function showRefusal(narrator: Narrator, refusal: RefusalView): void {
  const [blocker] = refusal.blockers;
  narrator.facts({
    refused: `${refusal.kind}: ${refusal.message}`,
    rule: blocker?.rule || 'none',
    expires: [
      blocker?.expiresAtMicros == null ? 'not known' : timeOfDay(blocker.expiresAtMicros),
      ...(refusal.retryAfterMs === null ? [] : [`in ${inSeconds(refusal.retryAfterMs)} unless renewed`]),
    ].join(', '),
    'what to do': refusal.action,
    who: `${refusal.who}${refusal.retryable ? '; the same request can succeed later' : ''}`,
  });
}
