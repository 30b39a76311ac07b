/**
 * An agent run as a process of its own, on the built package. One JSON command a line on standard input, one JSON event a
 * line on standard output: {"id", …} answers the command of that id, {"event", …} is something that happened.
 */
import { createInterface } from 'node:readline';
import { acquire, connectWrit, resume } from '../../dist/clients/runner/index.js';

const { WRIT_ENDPOINTS, WRIT_TOKEN, TARGET_ORIGIN } = process.env;
const writ = connectWrit({ endpoint: WRIT_ENDPOINTS.split(','), token: WRIT_TOKEN });
const targets = TARGET_ORIGIN === undefined ? [] : [{ origins: [TARGET_ORIGIN] }];
const leases = new Map();

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const told = (error) => ({ name: error.name, message: error.message, code: error.code, reason: error.reason });

function keep(name, lease) {
  leases.set(name, lease);
  lease.on('jeopardy', ({ remainingMs }) => say({ event: 'jeopardy', lease: name, remainingMs }));
  lease.on('safe', () => say({ event: 'safe', lease: name }));
  lease.on('lost', (error) => say({ event: 'lost', lease: name, error: told(error) }));
  lease.on('asked_to_yield', ({ resources }) => say({ event: 'asked_to_yield', lease: name, resources }));
  lease.on('input_changed', ({ resource }) => say({ event: 'input_changed', lease: name, resource }));
  return { leaseId: lease.id, token: lease.token(lease.entries[0].resource)?.toString() };
}

const commands = {
  acquire: async ({ name, request }) =>
    keep(name, await acquire(writ, request.targets ? { ...request, targets } : request)),
  resume: async ({ name, request }) => keep(name, await resume(writ, request)),
  /** Stops this process at the worst place, right before a write is sent; goes on when somebody continues it. */
  stopThenWrite: async ({ name, path, writes }) => {
    process.kill(process.pid, 'SIGSTOP');
    return write(name, path, writes);
  },
  write: async ({ name, path, writes }) => write(name, path, writes),
  state: async ({ name }) => {
    const lease = leases.get(name);
    return { lost: lease.lost?.reason, remainingMs: lease.remainingMs, aborted: lease.signal.aborted, now: Date.now() };
  },
  release: async ({ name }) => ({ outcome: (await leases.get(name).release()).outcome }),
};

async function write(name, path, writes) {
  const response = await leases.get(name).fetch(`${TARGET_ORIGIN}${path}`, { method: 'PUT', writes, body: 'x' });
  return { status: response.status };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, command, ...rest } = JSON.parse(line);
  commands[command](rest).then(
    (result) => say({ id, result }),
    (error) => say({ id, error: told(error) }),
  );
}
writ.close();
