import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { EXIT } from '../exit-codes.js';
import type { Narrator } from './narrate.js';
import { until } from './processes.js';
import { UNDECLARED_WRITE, WRITE_AFTER_STOP } from './scene-authority.js';
import { LATE_WRITE, LATE_WRITE_ALONE } from './scene-late-write.js';
import type { Stage } from './stage.js';

const CLI = '../index.js';

/** A decimal string, as 64-bit numbers are in JSON. */
const revision = z.string().transform(Number);

const verdictForm = z.object({
  ok: z.boolean(),
  eventsVerified: z.number(),
  lastRevision: revision,
  keyFingerprint: z.string(),
  problem: z.object({ fault: z.string(), revision: revision.nullable(), message: z.string() }).nullable(),
});

type Verdict = z.infer<typeof verdictForm>;

/** Scene 5: the log, checked by somebody who has nothing but a file and a public key (A1, A2). */
export async function auditLog(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.title('5. The log of all this');
  const denial = await findAttempts(stage, narrator);
  const files = {
    log: join(stage.directory, 'audit.ndjson'),
    forged: join(stage.directory, 'audit-forged.ndjson'),
    key: join(stage.directory, 'writ-public-key.pem'),
  };
  const { checkpoint } = await stage.as('auditor').audit.getCheckpoint({});
  await writeFile(files.key, checkpoint?.publicKey ?? '');
  const exported = await stage.command('export', [CLI, 'audit', 'export', '--output', files.log]);
  narrator.observe(
    'An auditor exported it: writ audit export --output audit.ndjson.',
    exported.ending === 'exit code 0',
    exported,
  );

  await stage.endServices();
  narrator.observe(
    'Coordinator and target service were asked to end, and ended well. Nobody is left to ask.',
    stage.endings().every((ending) => ending === 'exit code 0'),
    stage.endings(),
  );

  const good = await verify(stage, files.log, files.key);
  narrator.observe(
    `Verified offline, with the public key only: all ${good.verdict.eventsVerified} events, none changed, removed, inserted or reordered, the end signed.`,
    good.ending === `exit code ${EXIT.ok}` &&
      good.verdict.ok &&
      good.verdict.eventsVerified === good.verdict.lastRevision,
    good,
  );
  narrator.facts({
    command: 'writ audit verify audit.ndjson --public-key writ-public-key.pem',
    key: good.verdict.keyFingerprint,
  });

  const forged = forge(await readFile(files.log), denial.revision);
  await writeFile(files.forged, forged.bytes);
  narrator.say(
    `In a copy, one byte of event ${denial.revision} is changed, the refusal of run A's late write: "${forged.before}" now reads "${forged.after}".`,
  );
  const bad = await verify(stage, files.forged, files.key);
  narrator.facts({ answer: bad.verdict.problem?.message ?? 'none' });
  narrator.observe(
    `The change was found, and the event named: ${bad.verdict.problem?.revision}.`,
    bad.ending === `exit code ${EXIT.verification}` &&
      !bad.verdict.ok &&
      bad.verdict.problem?.fault === 'changed' &&
      bad.verdict.problem.revision === denial.revision,
    bad,
  );
}

/** What a `checks_denied` event says of each denial, as far as it matters here. */
const deniedForm = z.object({
  denials: z.array(z.object({ reason: z.string(), resource: z.string(), runId: z.string(), target: z.string() })),
});

/** The attempts that were refused while there was a coordinator, and why. */
const ATTEMPTS: Readonly<Record<string, string>> = {
  [LATE_WRITE]: 'expired',
  [UNDECLARED_WRITE]: 'not_covered',
  [WRITE_AFTER_STOP]: 'run_stopped',
};

/** Refused attempts are events too; they are appended shortly after they were answered. */
async function findAttempts(stage: Stage, narrator: Narrator): Promise<{ readonly revision: number }> {
  const found: Record<string, string> = {};
  let late = 0;
  for (const [requestId, reason] of Object.entries(ATTEMPTS)) {
    await until(`the log knows the request ${requestId}`, async () => {
      const { events } = await stage.as('auditor').audit.listEvents({ requestId, kinds: ['checks_denied'] });
      const [event] = events;
      if (event === undefined) return false;
      const denial = deniedForm.parse(JSON.parse(event.body)).denials.find((one) => one.reason === reason);
      if (denial === undefined) return false;
      const { resource, runId, target } = denial;
      found[requestId] =
        `event ${event.revision}: ${reason}, ${resource}, run ${runId.slice(0, 8)}…, checked by ${target}`;
      if (requestId === LATE_WRITE) late = Number(event.revision);
      return true;
    });
  }
  narrator.facts(found);
  narrator.observe(
    'The refused attempts are in it, with resource, run and reason, by the request ids that the target gave. (Denials of a short while share one event.)',
    late > 0,
    found,
  );
  const own = await stage.look(`requests/${LATE_WRITE_ALONE}`);
  const [record] = own.body as unknown as readonly { guard?: string; coordinator?: string }[];
  narrator.observe(
    "The refusal that the guard gave alone, while there was no coordinator, is in the target's own record.",
    record?.guard === 'stale_token' && record.coordinator === 'coordinator_unreachable',
    own,
  );
  return { revision: late };
}

async function verify(
  stage: Stage,
  log: string,
  key: string,
): Promise<{ readonly ending: string; readonly verdict: Verdict }> {
  const { ending, output } = await stage.command('verify', [
    CLI,
    '--json',
    'audit',
    'verify',
    log,
    '--public-key',
    key,
  ]);
  return { ending, verdict: verdictForm.parse(JSON.parse(output)) };
}

const WORD = 'expired';

/** Flips the lowest bit of one byte in the line of an event: "expired" becomes "expiree". */
function forge(
  log: Buffer,
  revision: number,
): { readonly bytes: Buffer; readonly before: string; readonly after: string } {
  const bytes = Buffer.from(log);
  const line = bytes.indexOf(`"revision":${revision},`);
  const start = bytes.lastIndexOf('\n', line) + 1;
  const at = bytes.indexOf(WORD, start);
  const last = at + WORD.length - 1;
  if (line < 0 || at < 0 || at > bytes.indexOf('\n', line)) throw new Error(`event ${revision} does not say "${WORD}"`);
  bytes.writeUInt8(bytes.readUInt8(last) ^ 1, last);
  return { bytes, before: WORD, after: bytes.toString('utf8', at, at + WORD.length) };
}
