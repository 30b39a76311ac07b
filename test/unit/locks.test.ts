import { expect, it } from 'vitest';
import { Namespace, leased } from '../support/domain.js';
it('x', () => { const n = new Namespace().runs('a'); n.hold('a', leased('doc/a')); expect(n.kinds).toEqual(['lease_granted']); });
