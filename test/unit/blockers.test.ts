import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findBlockers } from '../../src/domain/blockers.js';
import { rulesAbout } from '../../src/domain/conflict-map/index.js';
import { View } from '../../src/domain/decide/decision.js';
import { SECOND } from '../../src/domain/time.js';
import { compiled, DOCUMENT, leased, Namespace, optimistic, read, stable } from '../support/domain.js';

const look = (ns: Namespace, resource: string, most = 256) => findBlockers(new View(ns.state, ns.now), resource, most);
const seen = (ns: Namespace, resource: string) =>
  look(ns, resource).blockers.map(({ runId, resource: theirs, rule, waiting }) => [runId, theirs, rule, waiting]);

describe('who stands in the way of a write', () => {
  it('holds it, something below it, or all of what it is in, in whatever way', () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd', 'e');
    ns.hold('a', optimistic('doc/x'));
    ns.hold('b', optimistic('doc/x'));
    ns.hold('c', stable('doc/x/below'));
    ns.hold('d', read('doc/x'));
    ns.hold('e', leased('doc/y/'));
    expect(seen(ns, 'doc/x')).toEqual([
      ['a', 'doc/x', '', false],
      ['b', 'doc/x', '', false],
      ['c', 'doc/x/below', '', false],
    ]);
    expect(seen(ns, 'doc/y/z')).toEqual([['e', 'doc/y', '', false]]);
    expect(seen(ns, 'doc/free')).toEqual([]);
  });

  it('holds another id that a conflicts rule excludes, and only where the captures agree', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('service-token/acme'));
    ns.hold('b', leased('service-token/other'));
    expect(seen(ns, 'integration-config/acme')).toEqual([['a', 'service-token/acme', 'conflicts[0]', false]]);
  });

  it('holds what a write to it would bring, or holds it by a rule', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', leased('dns/staging/www'));
    expect(seen(ns, 'deployment/staging')).toEqual([['a', 'dns/staging/www', 'implies[0]', false]]);
    const other = new Namespace().runs('a');
    other.hold('a', leased('deployment/staging'));
    expect(seen(other, 'image-tag/staging')).toEqual([['a', 'image-tag/staging', 'implies[0]', false]]);
  });

  it('waits, first come first, also by a rule; not who has expired', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('service-token/acme'));
    ns.queue('b', leased('integration-config/acme'));
    ns.queue('c', leased('service-token/acme'));
    expect(seen(ns, 'integration-config/acme')).toEqual([
      ['a', 'service-token/acme', 'conflicts[0]', false],
      ['b', 'integration-config/acme', '', true],
      ['c', 'service-token/acme', 'conflicts[0]', true],
    ]);
    const gone = new Namespace().runs('a');
    gone.hold('a', leased('doc/x'));
    expect(look(gone.advance(3_600 * SECOND), 'doc/x').blockers).toEqual([]);
  });

  it('is told up to a bound, and that there are more', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    for (const run of ['a', 'b', 'c']) ns.hold(run, optimistic('doc/x'));
    expect(look(ns, 'doc/x', 3)).toMatchObject({ more: false, blockers: { length: 3 } });
    expect(look(ns, 'doc/x', 2)).toMatchObject({ more: true, blockers: { length: 2 } });
  });

  it('has everybody whom a refused write names', () => {
    const path = fc.constantFrom(
      'doc/x',
      'doc/x/y',
      'doc/x/',
      'deployment/e',
      'image-tag/e',
      'dns/e',
      'dns/e/r',
      'dns/e/',
      'service-token/t',
      'integration-config/t',
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(path, fc.boolean()), { maxLength: 5 }),
        path,
        fc.boolean(),
        (held, wanted, alone) => {
          const ns = new Namespace().runs('asker');
          for (const [index, [at, exclusive]] of held.entries()) {
            ns.run(`r${index}`);
            ns.acquire(`r${index}`, [exclusive ? leased(at) : optimistic(at)]);
          }
          const answer = ns.acquire('asker', [alone ? leased(wanted) : optimistic(wanted)]);
          if (answer.kind !== 'refusal') return;
          const told = new Set(look(ns, wanted.replace(/\/$/, '')).blockers.map(({ leaseId }) => leaseId));
          for (const { leaseId } of answer.refusal.blockers) expect(told).toContain(leaseId);
        },
      ),
    );
  });
});

describe('the rules about a resource', () => {
  const map = compiled(DOCUMENT);
  const about = (resource: string) => rulesAbout(map, resource).map((one) => [one.rule, one.resource]);

  it('name what excludes it, and why', () => {
    expect(about('service-token/acme')).toEqual([
      ['conflicts[0]', 'integration-config/acme'],
      ['conflicts[1]', 'obs-config/acme'],
    ]);
    expect(rulesAbout(map, 'integration-config/acme')[0]?.message).toBe(
      'One run may not write it while another writes "service-token/acme", since the config embeds the token.',
    );
  });

  it('name what a write to it brings, and what brings one', () => {
    expect(about('deployment/staging')).toEqual([
      ['implies[0]', 'image-tag/staging'],
      ['implies[0]', 'dns/staging'],
    ]);
    expect(about('image-tag/staging')).toEqual([['implies[0]', 'deployment/staging']]);
    expect(rulesAbout(map, 'dns/staging/www').map(({ message }) => message)).toEqual([
      'A write to "deployment/staging" also takes a stable read of all of it.',
    ]);
    expect(about('doc/x')).toEqual([]);
  });
});
