import type { Narrator } from './narrate.js';
import { member } from './problem.js';
import type { AgentRun, Stage } from './stage.js';

const POLICY = 'notification-policy/prod-alerts';
const TTL_MS = 60_000;

interface Policy {
  readonly destinations: readonly string[];
  readonly severity: string;
}

/** Scene 3: two agents change one document from one version; exactly one wins, and nothing is undone (C8, W1, T3). */
export async function versions(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.title('3. Two agents change one notification policy from version 41');
  const contract = {
    purpose: 'tune the alerts',
    allowed: [{ pattern: 'notification-policy/{id}', actions: ['change'] }],
  };
  const [a, b] = await Promise.all([stage.startAgent('run A', contract), stage.startAgent('run B', contract)]);
  const grants = await Promise.all([a, b].map((run) => run.acquire(POLICY, 'change', { ttlMs: TTL_MS })));
  narrator.observe(
    `Runs A (pid ${a.child.pid}) and B (pid ${b.child.pid}) both hold ${POLICY} at once: "change" is optimistic, so there is no queue.`,
    grants.every((grant) => 'granted' in grant && grant.granted.entries[0]?.exclusive === false),
    grants,
  );
  const read = await Promise.all([a, b].map((run) => run.read(POLICY)));
  const [before] = read.map((answer) => answer.body.body as Policy);
  narrator.observe(
    `Both read version 41: severity ${before?.severity}, destinations ${before?.destinations.join(', ')}.`,
    before !== undefined && read.every((answer) => answer.etag === '"41"'),
    read,
  );
  await change(stage, narrator, a, b, before);
  await Promise.all([a, b].map((run) => run.release()));
  await Promise.all([a, b].map(({ child }) => child.end()));
}

async function change(stage: Stage, narrator: Narrator, a: AgentRun, b: AgentRun, before: Policy): Promise<void> {
  const bare = await a.write(POLICY, { condition: {}, body: before, requestId: 'policy-a-bare' });
  narrator.observe(
    `A write that names no version is not even considered: ${bare.status} ${member(bare, 'code')}.`,
    bare.status === 428,
    bare,
  );
  const raised = await b.write(POLICY, {
    condition: { ifMatch: '"41"' },
    body: { ...before, severity: 'critical' },
    requestId: 'policy-b',
  });
  narrator.observe(
    'Run B raised the severity to critical, which made version 42.',
    raised.status === 200 && raised.etag === '"42"',
    raised,
  );

  narrator.say('Run A adds a destination to what it has read, and writes the whole document back from 41.');
  const mine = { ...before, destinations: [...before.destinations, 'chat:alerts'] };
  const lost = await a.write(POLICY, { condition: { ifMatch: '"41"' }, body: mine, requestId: 'policy-a' });
  narrator.facts({
    answer: `${lost.status} ${member(lost, 'code')}: ${member(lost, 'detail')}`,
    resource: member(lost, 'resource'),
    versions: `expected ${member(lost, 'expected_version')}, current ${member(lost, 'current_version')}`,
    category: `${member(lost, 'conflict_category')}; retryable: ${String(lost.body.retryable)}; resolver: ${member(lost, 'resolver')}`,
    'what to do': member(lost, 'next'),
  });
  narrator.observe(
    'Run A got a 412 that a machine can act on, although its token is as good as any: the version check alone caught it.',
    lost.status === 412 &&
      member(lost, 'resource') === POLICY &&
      member(lost, 'expected_version') === '41' &&
      member(lost, 'current_version') === '42' &&
      member(lost, 'conflict_category') === 'shared_document' &&
      lost.body.retryable === false &&
      member(lost, 'resolver') !== '',
    lost,
  );
  const now = await stage.look(POLICY);
  const policy = now.body.body as Policy;
  narrator.observe(
    `Run B's change is still there: version 42, severity ${policy.severity}, destinations ${policy.destinations.join(', ')}.`,
    now.etag === '"42"' && policy.severity === 'critical' && policy.destinations.join() === before.destinations.join(),
    now,
  );
}
