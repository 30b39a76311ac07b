import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WritError } from '../../src/clients/common/errors.js';
import { toTimestamp } from '../../src/clients/common/time.js';
import { putMap } from '../support/coordinator.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write } } }
  - { pattern: "dns/{zone}", owner_service: [svc:dns], actions: { point: { access: write } } }
aliases: [ { from: "https://releases.example/{env}", to: "release/{env}" } ]
`;

let replica: ServedReplica;

beforeAll(async () => {
  replica = await startServedReplica();
  await putMap(replica.api, MAP);
});

afterAll(() => replica?.stop());

let next = 0;
/** Of one attempt of a test: what was reported once is reported. */
const fresh = (id: string): string => `${id}-${++next}`;

const at = (seconds: number) => toTimestamp((Date.now() / 1_000 + seconds) * 1e6);

const report = (id: string) => ({
  overrideId: id,
  who: 'alice@example.com',
  why: 'the coordinator is down, and the release is broken',
  until: { seconds: 1_800_000_000n, nanos: 0 },
  patterns: ['release/{env}'],
});

const use = (requestId: string, resource = 'release/prod-eu') => ({
  requestId,
  usedAt: { seconds: 1_790_000_000n, nanos: 0 },
  writes: [{ resource, action: 'promote', observedVersion: '7' }],
});

async function eventsOf(requestId: string) {
  const { events } = await replica.client('auditor').audit.listEvents({ requestId, kinds: ['override_reported'] });
  return events.map((event) => ({
    ...event,
    body: JSON.parse(event.body) as Record<string, unknown>,
    // The reason stands beside the log, where it can be erased (A3).
    why: event.texts.map(({ text }) => text),
  }));
}

describe('ReportOverride', () => {
  it('is an event that the request id and the resource lead to', async () => {
    const target = replica.client('target');
    const [override, request, call] = [fresh('o'), fresh('req'), fresh('call')];
    const answer = await target.fence.reportOverride(
      { ...report(override), use: use(request, 'https://releases.example/prod-eu') },
      { requestId: call },
    );
    expect(answer.alreadyReported).toBe(false);
    const [event, ...more] = await eventsOf(request);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      actor: 'target',
      resources: ['release/prod-eu'],
      requestIds: [request, call],
      revision: answer.logRevision,
      why: ['the coordinator is down, and the release is broken'],
      body: {
        overrideId: override,
        who: 'alice@example.com',
        why: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
        patterns: ['release/{env}'],
        notOwned: [],
        use: { requestId: request, writes: [{ action: 'promote', observedVersion: '7' }] },
      },
    });
  });

  it('is recorded once, also when it is told twice at a time', async () => {
    const target = replica.client('target');
    const [override, requestId] = [fresh('o'), fresh('req')];
    const request = { ...report(override), use: use(requestId) };
    const answers = await Promise.all(Array.from({ length: 8 }, () => target.fence.reportOverride(request)));
    expect(answers.filter(({ alreadyReported }) => !alreadyReported)).toHaveLength(1);
    expect(await eventsOf(requestId)).toHaveLength(1);
    // The override itself, and another request, are other reports.
    expect((await target.fence.reportOverride(report(override))).alreadyReported).toBe(false);
    expect((await target.fence.reportOverride({ ...request, use: use(fresh('req')) })).alreadyReported).toBe(false);
    await expect(target.fence.reportOverride({ ...request, why: 'another reason' })).rejects.toMatchObject({
      code: 'ALREADY_EXISTS',
      reason: 'IDEMPOTENCY_KEY_REUSED',
    });
  });

  it('is recorded for each use by its own id, whatever the request id says', async () => {
    const { fence } = replica.client('target');
    const [override, incident] = [fresh('o'), fresh('inc')];
    const request = (useId: string) => ({ ...report(override), use: { ...use(incident), useId } });
    const told = async (useId: string) => !(await fence.reportOverride(request(useId))).alreadyReported;
    expect([await told('u-1'), await told('u-2'), await told('u-1')]).toEqual([true, true, false]);
    expect((await eventsOf(incident)).map(({ body }) => body.use)).toMatchObject([{ useId: 'u-1' }, { useId: 'u-2' }]);
    await expect(
      fence.reportOverride({ ...request('u-2'), use: { ...use('another'), useId: 'u-2' } }),
    ).rejects.toMatchObject({
      reason: 'IDEMPOTENCY_KEY_REUSED',
      message: expect.stringContaining(`The use "u-2" of the override "${override}"`),
      metadata: { override_id: override, use_id: 'u-2' },
    });
    await expect(fence.reportOverride(request('a\nb'))).rejects.toMatchObject({
      violations: [{ field: 'use.use_id' }],
    });
  });

  it('says of what another target owns that it is not its own, and records it all the same', async () => {
    const requestId = fresh('req');
    await replica
      .client('target')
      .fence.reportOverride({ ...report(fresh('o')), use: use(requestId, 'dns/example.com') });
    expect((await eventsOf(requestId))[0]?.body).toMatchObject({ notOwned: ['dns/example.com'] });
  });

  it('names every field that is wrong', async () => {
    const error: WritError = await replica
      .client('target')
      .fence.reportOverride({ overrideId: '', patterns: [], until: at(60), use: { writes: [{ action: 'a b' }] } })
      .then(
        () => Promise.reject(new Error('it succeeded')),
        (thrown) => thrown,
      );
    // What has no form at all comes first.
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', violations: [{ field: 'use.used_at' }] });
    await expect(
      replica.client('target').fence.reportOverride({
        overrideId: '',
        patterns: [],
        until: at(60),
        use: { usedAt: at(0), writes: [{ action: 'a b' }] },
      }),
    ).rejects.toMatchObject({
      violations: [
        { field: 'override_id' },
        { field: 'who' },
        { field: 'why' },
        { field: 'patterns' },
        { field: 'use.request_id' },
        { field: 'use.writes[0].resource' },
        { field: 'use.writes[0].action' },
      ],
    });
  });
});
