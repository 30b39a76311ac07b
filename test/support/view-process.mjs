/**
 * A target's process that decides by a view, over and over, to be stopped in the middle. It is run from the build: node
 * view-process.mjs ENDPOINT TOKEN QUESTION. On each line of its input it says what it has decided so far.
 */

import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { connectWrit, createFenceView } from '../../dist/clients/target/index.js';

const [, , endpoint = '', token = '', asked = ''] = process.argv;
const { leaseId, resource, action, fencingToken } = JSON.parse(asked);
const question = { leaseId, writes: [{ resource, action, token: BigInt(fencingToken) }] };
const client = connectWrit({ endpoint, token });
const view = createFenceView({ client });

/** A longer time between two decisions: the process was stopped. */
const GAP_MS = 1_000;
const told = { lastAllowedAt: 0, reason: '', decided: 0, /** @type {string[]} */ afterGaps: [] };

createInterface({ input: process.stdin })
  .on('line', () => process.stdout.write(`${JSON.stringify(told)}\n`))
  .on('close', () => process.exit());

for (let before = Date.now(); ; ) {
  const at = Date.now();
  const { allowed, reason } = view.check(question);
  if (allowed) told.lastAllowedAt = at;
  if (at - before > GAP_MS) told.afterGaps.push(reason);
  told.reason = reason;
  told.decided += 1;
  before = at;
  await pause(1);
}
