import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { readProblem } from '../../src/clients/runner/target-problem.js';
import { type ConditionalWrite, writeConditionally } from '../../src/clients/runner/write-conditionally.js';
import { type ProblemInit, problem } from '../../src/clients/target/problem.js';

/** A document behind version checks, on a real socket; `answers` come before what it would say by itself. */
let server: Server;
let url: string;
let document: { version: number; items: string[] };
let answers: ((incoming: IncomingMessage, answer: ServerResponse) => void)[] = [];
let received: { body: string; ifMatch: string; key: string; requestId: string }[] = [];

beforeAll(async () => {
  server = createServer((incoming, answer) => void serve(incoming, answer));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/policy`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  document = { version: 41, items: ['ops'] };
  answers = [];
  received = [];
});

async function serve(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
  const body = (await incoming.toArray()).join('');
  if (incoming.method === 'GET') {
    answer.setHeader('etag', `"${document.version}"`).end(JSON.stringify(document.items));
    return;
  }
  const header = (name: string) => String(incoming.headers[name]);
  received.push({
    body,
    ifMatch: header('if-match'),
    key: header('idempotency-key'),
    requestId: header('x-request-id'),
  });
  const scripted = answers.shift();
  if (scripted !== undefined) scripted(incoming, answer);
  else if (header('if-match') !== `"${document.version}"`) refuse(answer, conflict('derived', true));
  else {
    document = { version: document.version + 1, items: JSON.parse(body) as string[] };
    answer.end();
  }
}

function refuse(answer: ServerResponse, init: ProblemInit, headers: Record<string, string> = {}): void {
  answer.writeHead(init.status, { 'content-type': 'application/problem+json', ...headers });
  answer.end(JSON.stringify(problem(init)));
}

const conflict = (category: string, retryable: boolean): ProblemInit => ({
  status: 412,
  code: 'version_conflict',
  detail: 'Somebody else was faster.',
  retryable,
  resource: 'policy/41',
  expected_version: '41',
  current_version: '42',
  conflict_category: category,
});

/** What happens between somebody's read and their write. */
const meanwhile = (items: string[], init: ProblemInit) => (_: IncomingMessage, answer: ServerResponse) => {
  document = { version: document.version + 1, items };
  refuse(answer, init);
};

const add = (item: string, more: Partial<ConditionalWrite<string[], string[]>> = {}) =>
  writeConditionally<string[], string[]>({
    reread: async () => {
      const response = await fetch(url);
      return { state: (await response.json()) as string[], version: response.headers.get('etag') ?? '' };
    },
    decide: ({ state }) =>
      state.includes(item) ? { kind: 'unneeded', why: 'it is there' } : { kind: 'write', change: [...state, item] },
    send: (change, { ifMatch, idempotencyKey, requestId }) =>
      fetch(url, {
        method: 'PUT',
        body: JSON.stringify(change),
        headers: { 'if-match': ifMatch, 'idempotency-key': idempotencyKey, 'x-request-id': requestId },
      }),
    ...more,
  });

describe('a conditional write (W1, W4)', () => {
  it('is made on the version that was read', async () => {
    expect(await add('mail')).toMatchObject({ outcome: 'written', attempts: 1 });
    expect(document).toEqual({ version: 42, items: ['ops', 'mail'] });
    expect(received[0]).toMatchObject({ ifMatch: '"41"' });
  });

  it.each(['derived', 'independent'])(
    'of class %s is read and decided anew after a conflict, never resent (W1a)',
    async (category) => {
      answers = [meanwhile(['ops', 'pager'], conflict(category, true))];
      expect(await add('mail')).toMatchObject({ outcome: 'written', attempts: 2 });
      expect(document.items).toEqual(['ops', 'pager', 'mail']);
      expect(received.map(({ body }) => body)).toEqual(['["ops","mail"]', '["ops","pager","mail"]']);
      expect(received[1]?.ifMatch).toBe('"42"');
      // Another body never goes by an earlier key (W2), and both attempts are found together.
      expect(new Set(received.map(({ key }) => key)).size).toBe(2);
      expect(new Set(received.map(({ requestId }) => requestId)).size).toBe(1);
    },
  );

  it('finds that what it wanted is there by now, and writes nothing more (W1a)', async () => {
    answers = [meanwhile(['ops', 'mail'], conflict('derived', true))];
    expect(await add('mail')).toEqual({ outcome: 'unneeded', why: 'it is there', attempts: 1 });
    expect(received).toHaveLength(1);
  });

  it('tells the decision what came before, which may stop it', async () => {
    answers = [meanwhile(['closed'], conflict('derived', true))];
    const decide = vi.fn<ConditionalWrite<string[], string[]>['decide']>(({ state }, earlier) =>
      state.includes('closed')
        ? { kind: 'stop', why: `${earlier?.kind}: it was closed` }
        : { kind: 'write', change: ['x'] },
    );
    expect(await add('mail', { decide })).toEqual({ outcome: 'stopped', why: 'refused: it was closed', attempts: 1 });
    expect(decide.mock.calls.map(([, earlier]) => earlier?.kind)).toEqual([undefined, 'refused']);
  });

  it('of a shared pointer stops and shows both candidates, the other one as it is now (T7)', async () => {
    answers = [meanwhile(['theirs'], conflict('shared_pointer', false))];
    const showBoth = vi.fn();
    const result = await add('mine', { showBoth });
    expect(result).toMatchObject({
      outcome: 'show_both',
      mine: ['ops', 'mine'],
      theirs: { state: ['theirs'], version: '"42"' },
      resolver: 'release owner',
      attempts: 1,
    });
    expect(showBoth).toHaveBeenCalledTimes(1);
    expect(received).toHaveLength(1);
  });

  it('of a shared pointer that is not there any more has no other candidate, and asks', async () => {
    answers = [(_, answer) => refuse(answer, conflict('shared_pointer', false))];
    let reads = 0;
    const reread: ConditionalWrite<string[], string[]>['reread'] = async () => {
      reads += 1;
      if (reads > 1) throw new Error('404');
      return { state: ['ops'], version: '"41"' };
    };
    expect(await add('mine', { reread })).toMatchObject({ outcome: 'ask', observed: undefined, attempts: 1 });
  });

  it.each([
    ['membership', false, 'account owner'],
    ['shared_document', false, 'named operator'],
    // The target forbids what the class would allow.
    ['derived', false, 'agent'],
    // What the class does not allow, no target allows.
    ['membership', true, 'account owner'],
    ['no-such-class', true, ''],
  ])('of class %s (retryable: %s) stops and asks', async (category, retryable, resolver) => {
    answers = [meanwhile(['theirs'], conflict(category, retryable))];
    const ask = vi.fn();
    expect(await add('mine', { ask })).toMatchObject({ outcome: 'ask', resolver, observed: { version: '"42"' } });
    expect(ask).toHaveBeenCalledTimes(1);
    expect(received).toHaveLength(1);
  });

  it('whose outcome the target does not know is for a person, and nothing else is sent for it (E3)', async () => {
    const init = { status: 409, code: 'outcome_unknown', detail: 'begun', resolver: 'operator' } as const;
    answers = [(_, answer) => refuse(answer, init)];
    expect(await add('mail')).toMatchObject({ outcome: 'ask', resolver: 'operator', attempts: 1 });
    expect(received).toHaveLength(1);
  });

  it('of a shared document that the lease names is decided anew where the target says so', async () => {
    answers = [meanwhile(['theirs'], conflict('shared_document', true))];
    expect(await add('mine')).toMatchObject({ outcome: 'written', attempts: 2 });
  });

  it.each([
    [409, 'stale_token'],
    [412, 'stale_token'],
    [412, 'not_opened'],
    [409, 'run_stopped'],
    [403, 'not_covered'],
    [422, 'idempotency_key_reused'],
    [428, 'precondition_required'],
  ] as const)('refused as %d %s is not tried again, whatever the answer says', async (status, code) => {
    answers = [(_, answer) => refuse(answer, { status, code, detail: 'no', retryable: true })];
    expect(await add('mail')).toMatchObject({ outcome: 'refused', problem: { status, code }, attempts: 1 });
    expect(received).toHaveLength(1);
  });

  it('is not taken for made when the answer is a redirect', async () => {
    answers = [(_, answer) => answer.writeHead(302, { location: '/elsewhere' }).end()];
    const send: ConditionalWrite<string[], string[]>['send'] = (change) =>
      fetch(url, { method: 'PUT', body: JSON.stringify(change), redirect: 'manual' });
    expect(await add('mail', { send })).toMatchObject({ outcome: 'refused', problem: { code: 'http_302' } });
  });

  it.each([
    ['the connection breaks after it was written', (incoming: IncomingMessage) => incoming.socket.resetAndDestroy()],
    ['a gateway says 502', (_: IncomingMessage, answer: ServerResponse) => answer.writeHead(502).end()],
  ])('whose answer is lost (%s) is looked for, and not made twice (T6)', async (_, lose) => {
    answers = [
      (incoming, answer) => {
        document = { version: 42, items: ['ops', 'mail'] };
        lose(incoming, answer);
      },
    ];
    expect(await add('mail')).toEqual({ outcome: 'unneeded', why: 'it is there', attempts: 1 });
  });

  it.each([
    [503, 'coordinator_unreachable'],
    [429, 'rate_limited'],
    [409, 'idempotency_in_flight'],
  ] as const)('not decided (%d %s) is read and decided anew', async (status, code) => {
    answers = [(_, answer) => refuse(answer, { status, code, detail: 'later' }, { 'retry-after': '0' })];
    expect(await add('mail')).toMatchObject({ outcome: 'written', attempts: 2 });
  });

  it('gives up after its attempts, with the last refusal, and at once where it would have to wait too long', async () => {
    const busy = (headers: Record<string, string>) => (_: IncomingMessage, answer: ServerResponse) =>
      refuse(answer, { status: 503, code: 'unavailable', detail: 'later' }, headers);
    answers = Array.from({ length: 5 }, () => busy({}));
    expect(await add('mail', { maxAttempts: 2 })).toMatchObject({
      outcome: 'gave_up',
      attempts: 2,
      last: { kind: 'refused', problem: { code: 'unavailable' } },
    });
    expect(received).toHaveLength(2);
    answers = [busy({ 'retry-after': '3600' })];
    expect(await add('mail')).toMatchObject({ outcome: 'gave_up', attempts: 1 });
    await expect(add('mail', { maxAttempts: 11 })).rejects.toThrow(RangeError);
  });

  it('ends with the reason of whoever gives up, and lets what is no lost answer through', async () => {
    const giveUp = new AbortController();
    const send = () => {
      giveUp.abort(new Error('enough'));
      return Promise.reject(giveUp.signal.reason);
    };
    await expect(add('mail', { send, signal: giveUp.signal })).rejects.toThrow('enough');
    const bug = new TypeError('a bug');
    await expect(add('mail', { send: () => Promise.reject(bug) })).rejects.toBe(bug);
  });
});

describe("a target's refusal", () => {
  const answer = (body: string, type = 'application/problem+json', status = 412) =>
    readProblem(new Response(body, { status, headers: { 'content-type': type } }));

  it.each([
    ['no problem details', '<html>', 'text/html'],
    ['no JSON', '{', 'application/problem+json'],
    ['without a code', '{"retryable":true}', 'application/problem+json'],
    ['with a code that is none', '{"code":"Not A Code","retryable":true}', 'application/problem+json'],
    ['far too large', `{"code":"x","detail":"${'x'.repeat(70_000)}","retryable":true}`, 'application/problem+json'],
  ])('that is %s is known by its status, and nothing to retry', async (_, body, type) => {
    expect(await answer(body, type)).toMatchObject({ status: 412, code: 'version_conflict', retryable: false });
  });

  it('has members of a wrong form passed over, and texts cut', async () => {
    const body = {
      code: 'version_conflict',
      detail: 'x'.repeat(5_000),
      retryable: 'yes',
      conflict_category: 7,
      own: 1,
    };
    const read = await answer(JSON.stringify(body));
    expect(read).toMatchObject({ retryable: false, conflict_category: undefined });
    expect(read?.detail).toHaveLength(1_024);
    expect(read).not.toHaveProperty('own');
  });
});
