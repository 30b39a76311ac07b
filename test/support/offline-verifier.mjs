import { createInterface } from 'node:readline';
import { createCredentialVerifier } from '../../dist/clients/target/index.js';

// A target that verifies by itself, in a process with a clock of its own. Argument: the verifier's options as JSON, with
// `keysUrl` in place of `keys` where they are to be fetched. For each line of stdin, a credential, one line of JSON: what
// the verifier says, and the clock it has.

const { keysUrl, ...options } = JSON.parse(process.argv[2] ?? '{}');
const verifier = createCredentialVerifier({
  ...options,
  ...(keysUrl === undefined ? {} : { keys: new URL(keysUrl) }),
});

for await (const line of createInterface({ input: process.stdin })) {
  const says = await verifier.verifyCredential(line).then(
    () => 'accepted',
    (error) => error.reason ?? String(error),
  );
  process.stdout.write(`${JSON.stringify({ says, clock: Date.now() })}\n`);
}
