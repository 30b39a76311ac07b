/**
 * A coordinator, a Python service and nginx between it and an agent's writes.
 *
 *     npm run build && node examples/python-behind-nginx/run.mjs
 */
import { acquire, connectWrit, toTimestamp } from 'writ/runner';
import { seen } from '../support/stage.mjs';
import { startAll } from './start.mjs';

const stage = await startAll();
const runner = connectWrit({ endpoint: stage.grpc, token: stage.tokens.runner });
try {
  const { run } = await runner.run.createRun({
    purpose: 'a friendlier welcome',
    allowed: [{ pattern: 'page/{name}', actions: ['replace'] }],
    authorityEndsAt: toTimestamp((Date.now() + 600_000) * 1000),
  });
  const write = async (text, version, headers = {}) => {
    const answer = await fetch(`${stage.url}/pages/welcome`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', 'if-match': `"${version}"`, ...headers },
      body: JSON.stringify({ text }),
    });
    const { code, detail = '', by } = await answer.json();
    return { seen: `${answer.status} ${code ?? `written by ${by === run.runId ? 'the run' : by}`}`, detail };
  };

  seen('a write without a lease', (await write('Hi!', 1)).seen, '401 credential_required');
  const lease = await acquire(runner, {
    runId: run.runId,
    resources: [{ resource: 'page/welcome', actions: ['replace'] }],
  });
  const presented = { 'writ-lease': lease.id, 'writ-fencing-token': String(lease.token('page/welcome')) };
  seen('a write under the lease', (await write('Hi!', 1, presented)).seen, '200 written by the run');
  await lease.release();
  const late = await write('Hi again!', 2, presented);
  seen('a write after the lease', late.seen, '409 released');
  console.log(`  which says: ${late.detail}`);
  const page = await (await fetch(`${stage.url}/pages/welcome`)).json();
  seen('what is there', `${page.text} (version ${page.version})`, 'Hi! (version 2)');
} finally {
  runner.close();
  await stage.close();
}
