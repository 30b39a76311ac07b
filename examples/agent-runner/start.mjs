/** Starts a coordinator of its own, the service, and three agents that want to change one document at the same time. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connectWrit, toTimestamp } from 'writ/runner';
import { startPolicyService } from './policy-service.mjs';

const here = (name) => new URL(name, import.meta.url);
const dataDir = mkdtempSync(join(tmpdir(), 'writ-agent-runner-'));

// `writ` is on the path under `npm start`, and where the package is installed globally.
const coordinator = spawn('writ', ['serve'], {
  env: { ...process.env, WRIT_DATA_DIR: dataDir, WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0' },
  stdio: ['ignore', 'pipe', 'ignore'],
});
let service;
try {
  const [line] = await once(createInterface({ input: coordinator.stdout }), 'line');
  const endpoint = JSON.parse(line).grpc;
  const tokens = JSON.parse(readFileSync(join(dataDir, 'dev-tokens.json'), 'utf8'));

  const admin = connectWrit({ endpoint, token: tokens.admin });
  const document = readFileSync(here('map.yaml'), 'utf8');
  await admin.conflictMap.putConflictMap({ document, expectedVersion: 0n, reason: 'the example' });
  admin.close();
  service = await startPolicyService({ endpoint, token: tokens.target });

  // Who starts agents makes the run of each: its contract says what it may ask for, and until when.
  const runner = connectWrit({ endpoint, token: tokens.runner });
  const agents = ['pager', 'mail', 'chat'].map(async (destination) => {
    const { run } = await runner.run.createRun({
      purpose: `notify by ${destination}`,
      allowed: [{ pattern: 'notification-policy/{id}', actions: ['patch'] }],
      authorityEndsAt: toTimestamp((Date.now() + 600_000) * 1000),
    });
    const agent = spawn(process.execPath, [here('agent.mjs').pathname], {
      env: {
        ...process.env,
        WRIT_ENDPOINT: endpoint,
        WRIT_TOKEN: tokens.runner,
        POLICY_URL: service.url,
        RUN_ID: run.runId,
        DESTINATION: destination,
      },
      stdio: 'inherit',
    });
    const [code] = await once(agent, 'exit');
    if (code !== 0) throw new Error(`the agent for ${destination} ended with ${code}`);
  });
  await Promise.all(agents);
  runner.close();

  const policy = await (await fetch(service.url)).json();
  console.log(`the policy now notifies: ${[...policy.destinations].sort().join(', ')}`);
} finally {
  service?.close();
  coordinator.kill('SIGTERM');
  await once(coordinator, 'exit');
  rmSync(dataDir, { recursive: true, force: true });
}
