import { it } from 'vitest';
import { Simulation } from '../support/simulation.js';
const L = JSON.parse(process.env['TAPE'] as string) as number[];
it('debug', () => {
  const w = new Simulation();
  let printed = 0;
  const dump = () => { for (; printed < w.database.log.length; printed++) { const r = w.database.log[printed]!; const b = JSON.parse(r.body); const l = b.lease; console.log(r.revision, r.time % 1e10, r.kind, l ? `${l.leaseId} ${l.runId} ${l.entries.map((e: any) => e.access[0] + (e.exclusive ? 'X' : 'O') + ' ' + e.resource + (e.scope ?? '') + (e.observedRefusal ?? '')).join(', ')}` : JSON.stringify(b).slice(0, 200)); } };
  try { for (const n of L) { w.step(n); dump(); } w.finish(); } catch (e) { dump(); console.log(String(e)); }
});
