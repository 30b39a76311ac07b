import { it } from 'vitest';
import { Namespace, leased } from '/work/main/test/support/domain.js';
import { SECOND } from '/work/main/src/domain/time.js';
it('queue', () => {
  const ns = new Namespace();
  ns.run('holder'); const h = ns.hold('holder', leased('doc/x'));
  for (let i = 0; i < 400; i++) {
    ns.run(`r${i}`);
    const t = performance.now();
    ns.acquire(`r${i}`, [leased('doc/x')], { wait: 600 * SECOND });
    if (i % 50 === 49) console.log(i + 1, (performance.now() - t).toFixed(1), 'ms');
  }
  const t = performance.now(); ns.release(h); console.log('release', (performance.now() - t).toFixed(1));
});
