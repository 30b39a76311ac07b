import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_LEASE, presentsCredential } from '../../src/route-table/index.js';
import { type PresentedHeaders, readPresented } from '../../src/services/presented-write.js';

const NOTHING: PresentedHeaders = { authorization: [], lease: [], fencingToken: [], ifMatch: [], ifNoneMatch: [] };
const LEASE = 'f'.repeat(32);

/** A token of the shape of Writ's credentials; nobody has signed it. */
const credential = (details: unknown = [{ type: 'writ_write_set' }]): string =>
  ['{"alg":"ES256"}', JSON.stringify({ authorization_details: details }), 'x']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');

const read = (headers: Partial<PresentedHeaders>, writes = 1) => readPresented({ ...NOTHING, ...headers }, writes);
const presented = (headers: Partial<PresentedHeaders>, writes = 1) => {
  const answer = read(headers, writes);
  if (!answer.ok) throw new Error(answer.message);
  return answer.presented;
};

describe('what a request presents', () => {
  it('is a lease with its tokens, one for all writes or one for each', () => {
    const lease = [LEASE];
    expect(presented({ lease, fencingToken: ['7'] }, 2)).toMatchObject({
      leaseId: LEASE,
      credential: '',
      tokens: [7, 7],
    });
    expect(presented({ lease, fencingToken: ['7, 8'] }, 2).tokens).toEqual([7, 8]);
    expect(read({ lease, fencingToken: ['7,8'] }, 3).ok).toBe(false);
    expect(presented({ lease, fencingToken: ['9007199254740993'] }).tokens).toEqual([Number.POSITIVE_INFINITY]);
  });

  it('is a credential, which brings its tokens', () => {
    const token = credential();
    for (const scheme of ['Bearer', 'bearer', 'DPoP'])
      expect(presented({ authorization: [`${scheme} ${token}`], fencingToken: ['7'] })).toMatchObject({
        credential: token,
        leaseId: '',
        tokens: [0],
        nothing: false,
      });
  });

  it('is the credential where both are there, unless the bearer is none of Writ’s', () => {
    const both = (authorization: string) =>
      presented({ authorization: [authorization], lease: [LEASE], fencingToken: ['7'] });
    expect(both(`Bearer ${credential()}`)).toMatchObject({ leaseId: '', credential: credential() });
    expect(both('DPoP whatever')).toMatchObject({ leaseId: '', credential: 'whatever' });
    for (const own of [
      'Bearer opaque',
      `Bearer ${credential([{ type: 'other' }])}`,
      `Bearer ${credential('x')}`,
      'Basic eDp5',
    ])
      expect(both(own)).toMatchObject({ leaseId: LEASE, credential: '', tokens: [7] });
    // Alone it is taken for what it is presented as, and refused as that.
    expect(presented({ authorization: ['Bearer opaque'] })).toMatchObject({ credential: 'opaque', nothing: false });
  });

  it('is nothing, which is a lease that cannot be', () => {
    for (const headers of [
      {},
      { authorization: ['Basic eDp5'] },
      { fencingToken: ['7'] },
      { authorization: ['Bearer'] },
    ])
      expect(presented(headers, 2)).toMatchObject({ nothing: true, leaseId: NO_LEASE, credential: '', tokens: [0, 0] });
    expect(NO_LEASE).not.toMatch(/^[0-9a-f]{32}$/);
  });

  it('never has two readings', () => {
    const value = fc.oneof(fc.constantFrom(LEASE, '7', '7,8', '"41"', '*', `Bearer ${credential()}`, ''), fc.string());
    const values = fc.array(value, { maxLength: 3 });
    const headers = fc.record({
      authorization: values,
      lease: values,
      fencingToken: values,
      ifMatch: values,
      ifNoneMatch: values,
    });
    fc.assert(
      fc.property(headers, fc.integer({ min: 1, max: 32 }), (sent, writes) => {
        const answer = readPresented(sent, writes);
        const ambiguous = Object.values(sent).some((all) => new Set(all).size > 1);
        if (ambiguous) expect(answer.ok).toBe(false);
        if (!answer.ok) return;
        const { leaseId, credential: token, tokens } = answer.presented;
        expect((leaseId === '') === (token !== '')).toBe(true);
        expect(tokens).toHaveLength(writes);
        if (token !== '') expect(new Set(tokens)).toEqual(new Set([0]));
      }),
    );
  });

  it('is known to be a credential by its shape, wherever it stands', () => {
    expect(presentsCredential(`Bearer ${credential()}`)).toBe(true);
    for (const own of ['Bearer own', credential(), '']) expect(presentsCredential(own)).toBe(false);
  });
});
