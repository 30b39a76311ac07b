import { it } from 'vitest';
import { writeFileSync } from 'node:fs';
import { simulate, type SimulationOptions } from '../support/simulation.js';
const options = JSON.parse(process.env['SIM_OPTIONS'] ?? '{}') as SimulationOptions;
function fails(tape: readonly number[]): string | null {
  try { simulate(tape, options); return null; } catch (e) { return String(e).slice(0, 200); }
}
it('find', () => {
  const from = Number(process.env['SEED'] ?? 1), count = Number(process.env['COUNT'] ?? 200);
  for (let seed = from; seed < from + count; seed++) {
    let s = seed * 2654435761 | 0;
    const len = Number(process.env['LEN'] ?? 150);
    let tape = Array.from({ length: len }, () => { s = (Math.imul(s, 1664525) + 1013904223) | 0; return s; });
    let why = fails(tape);
    if (why === null) continue;
    const kind = why.slice(0, 40).replace(/\d+/g, '#');
    const until = Date.now() + Number(process.env['SHRINK'] ?? 60_000);
    for (let size = tape.length >> 1; size >= 1 && Date.now() < until; size = size > 1 ? size >> 1 : 0) {
      for (let at = 0; at < tape.length && Date.now() < until;) {
        const shorter = [...tape.slice(0, at), ...tape.slice(at + size)];
        const w = fails(shorter);
        if (w !== null && w.slice(0, 40).replace(/\d+/g, '#') === kind) { tape = shorter; why = w; } else at += size;
      }
    }
    console.log('seed', seed, why, tape.length);
    writeFileSync('/tmp/t/tape.json', JSON.stringify(tape));
    return;
  }
  console.log('nothing found');
}, 600_000);
