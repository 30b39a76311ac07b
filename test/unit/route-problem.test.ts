import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { deniedBy } from '../../src/clients/target/gate-problems.js';
import type { FenceReason } from '../../src/domain/fence.js';
import { deniedWrites } from '../../src/services/route-problem.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const WRITE = { resource: 'page/x', action: 'replace', changeClass: 'shared_document', resolver: 'editor' } as const;
const VERDICT = { allowed: false, message: 'No.', observedOnly: false } as const;

/** Reasons of the contract, in lower case. */
const FENCE_REASONS = read('docs/reason-codes.md').split('\n## Fence reasons\n')[1]?.split('\n## ')[0] ?? '';
const REASONS = [...FENCE_REASONS.matchAll(/^\| `([A-Z_]+)` \|/gm)]
  .map(([, code = '']) => code.toLowerCase())
  .filter((code) => code !== 'ok') as Exclude<FenceReason, 'ok'>[];

const denied = (reason: FenceReason) => deniedWrites([WRITE], [{ ...VERDICT, reason, hold: null }], 'r-1');

describe('the problem of a denied write', () => {
  it('has the status that the guide says, for every reason there is', () => {
    const rows = read('docs/gateways.md').split('\n## Statuses\n')[1] ?? '';
    const documented = [...rows.matchAll(/^\| (\d{3}) \| (.*) \|$/gm)].flatMap(([, status, codes = '']) =>
      [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code]) => [code, Number(status)] as const),
    );
    const own = new Set(['malformed_request', 'credential_required', 'unrouted', 'database_unavailable']);
    const answered = REASONS.map((reason) => [reason, denied(reason).status] as const);
    const sorted = (pairs: readonly (readonly [string | undefined, number])[]) => pairs.map(String).toSorted();
    expect(REASONS.length).toBeGreaterThan(35);
    expect(sorted(documented.filter(([code]) => !own.has(code ?? '')))).toEqual(sorted(answered));
  });

  it('is what a target with a gate of its own answers', () => {
    for (const reason of REASONS) {
      const verdict = { ...VERDICT, reason };
      const { problem } = deniedBy({ ...verdict, writes: [verdict] } as never, [WRITE], 'r-1');
      const { detail, next, ...same } = denied(reason);
      expect(problem, reason).toMatchObject(same);
    }
  });

  it('says what to do, and is not to be sent again', () => {
    for (const reason of REASONS) {
      expect(denied(reason)).toMatchObject({
        type: `urn:writ:problem:${reason}`,
        code: reason,
        detail: 'No.',
        resource: 'page/x',
        action: 'replace',
        conflict_category: 'shared_document',
        retryable: false,
        next: expect.stringMatching(/^[A-Z].*\.$/),
        request_id: 'r-1',
      });
    }
  });

  it('asks for no new lease where the lease lives on, by a gateway and by a gate', () => {
    const byGate = (reason: FenceReason) => {
      const verdict = { ...VERDICT, reason };
      return deniedBy({ ...verdict, writes: [verdict] } as never, [WRITE], 'r-1').problem.next;
    };
    for (const reason of ['suspended', 'frozen', 'in_doubt'] as const) {
      for (const next of [denied(reason).next, byGate(reason)]) {
        expect(next, reason).toMatch(/wait until/i);
        expect(next, reason).not.toMatch(/new lease|nobody/i);
      }
    }
    // The parent's lease can have ended alone; then the run goes on, and may ask.
    for (const next of [denied('parent_ended').next, byGate('parent_ended')])
      expect(next).toMatch(/ask for a new lease/i);
  });

  it('names who decides where two have met, and all writes where several are denied', () => {
    expect(denied('stale_token').resolver).toBe('editor');
    expect(denied('not_covered')).not.toHaveProperty('resolver');
    for (const reason of ['frozen', 'in_doubt'] as const) expect(denied(reason).resolver).toBe('operator');
    const menu = { ...WRITE, resource: 'menu/x' };
    const verdict = (reason: FenceReason) => ({ ...VERDICT, allowed: reason === 'ok', reason, hold: null });
    const all = deniedWrites([WRITE, menu, menu], [verdict('ok'), verdict('expired'), verdict('not_covered')], 'r-1');
    expect(all).toMatchObject({ code: 'expired', resource: 'menu/x' });
    expect(all.refused?.map(({ code }) => code)).toEqual(['expired', 'not_covered']);
  });

  it('is none where nothing is denied', () => {
    expect(() => denied('ok')).toThrow();
  });
});
