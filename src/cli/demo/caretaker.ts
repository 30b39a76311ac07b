import { createInterface } from 'node:readline';
import { type Inventory, tidy } from './tidy.js';

/**
 * A program that waits for the end of the demo, whatever that end is (`kill -9` too), and then takes away what is left.
 * Each line on stdin is the whole inventory; the end of stdin is the end of the demo, since a dead process holds no pipe.
 */
async function main(): Promise<void> {
  // In a session of its own, yet a signal to "all node processes" should not end the one that cleans up.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  let inventory: Inventory | undefined;
  for await (const line of createInterface({ input: process.stdin })) inventory = JSON.parse(line) as Inventory;
  if (inventory !== undefined) await tidy(inventory);
}

await main();
