/** An agent that adds a destination to a shared notification policy, beside others that do the same. */
import { connectWrit, interruptSignal, withWriteSet, writeConditionally } from 'writ/runner';

const {
  WRIT_ENDPOINT: endpoint,
  WRIT_TOKEN: token,
  POLICY_URL: url,
  RUN_ID: runId,
  DESTINATION: destination,
} = process.env;
const resource = 'notification-policy/7';
const targets = [{ audience: 'target', origins: [new URL(url).origin] }];

const writ = connectWrit({ endpoint, token });
const { signal } = interruptSignal();
await withWriteSet(writ, { runId, resources: [{ resource, actions: ['patch'] }], targets, signal }, async (lease) => {
  const result = await writeConditionally({
    reread: async () => {
      const response = await lease.fetch(url);
      return { state: await response.json(), version: response.headers.get('etag') };
    },
    decide: ({ state }) =>
      state.destinations.includes(destination)
        ? { kind: 'unneeded', why: 'it is there already' }
        : { kind: 'write', change: { ...state, destinations: [...state.destinations, destination] } },
    send: (policy, { ifMatch, idempotencyKey, requestId }) =>
      lease.fetch(url, {
        method: 'PATCH',
        body: JSON.stringify(policy),
        writes: [resource],
        requestId,
        headers: { 'if-match': ifMatch, 'idempotency-key': idempotencyKey },
      }),
    maxAttempts: 10,
  });
  console.log(`${destination}: ${result.outcome} after ${result.attempts} attempt(s)`);
  if (result.outcome !== 'written' && result.outcome !== 'unneeded') process.exitCode = 1;
});
writ.close();
