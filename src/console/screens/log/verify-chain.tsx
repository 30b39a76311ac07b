import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../../api/client.js';
import { asProblem, Problem } from '../../api/problem.js';
import type { Answer, Checkpoint } from '../../api/shapes.js';
import { Fact, Facts, Panel } from '../../parts/page.js';
import { ProblemNote } from '../../parts/problem.js';
import { Copy, Exactly } from '../../parts/text.js';
import { type ChainVerdict, ChainVerifier, type CheckpointVerdict, verifyCheckpoint } from '../../pure/chain.js';
import { hexOfBase64 } from '../../pure/event-body.js';
import { counted } from '../../pure/words.js';

type EventsPage = Answer<'ListEventsResponse'>;

interface Result {
  readonly chain: ChainVerdict;
  readonly checkpoint: Checkpoint;
  readonly signature: CheckpointVerdict;
  /** Above 1: what came before was archived and cut. */
  readonly firstRevision: number;
}

const PAGE_SIZE = '1000';

/** Computes all hashes anew, here: nothing that the coordinator says of its own log is believed. */
export function VerifyChain({ namespace }: { readonly namespace: string }) {
  const [done, setDone] = useState(0);
  const [of, setOf] = useState(0);
  const [result, setResult] = useState<Result | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const aborter = useRef<AbortController | null>(null);
  useEffect(() => {
    const mine = new AbortController();
    aborter.current = mine;
    setResult(null);
    setProblem(null);
    verify(namespace, mine.signal, (events, all) => {
      setDone(events);
      setOf(all);
    })
      .then(setResult)
      .catch((error) => {
        if (!mine.signal.aborted) setProblem(asProblem(error));
      });
    return () => mine.abort();
  }, [namespace]);
  return (
    <Panel title="Verification" about="Every hash is computed anew in this browser, from what the events say.">
      <div class="body form" role="status">
        {problem !== null && <ProblemNote problem={problem} what="The log could not be read to its end." />}
        {result === null && problem === null && (
          <>
            <label class="unseen" for="verified">
              Events verified
            </label>
            <progress id="verified" max={Math.max(1, of)} value={done} /> {done.toLocaleString('en')} of{' '}
            {of.toLocaleString('en')}
          </>
        )}
        {result !== null && <Verdict {...result} />}
      </div>
    </Panel>
  );
}

function Verdict({ chain, checkpoint, signature, firstRevision }: Result) {
  const fitsCheckpoint =
    chain.ok && chain.last === Number(checkpoint.revision) && chain.head === hexOfBase64(checkpoint.hash);
  const good = fitsCheckpoint && signature.ok;
  return (
    <>
      <div class={`note tone-${good ? 'good' : 'bad'}`}>
        <p>
          <strong>{good ? 'The log is whole.' : 'The log is not what it should be.'}</strong>{' '}
          {chain.ok
            ? `${counted(chain.events, 'event')}, from revision ${chain.first} to ${chain.last}, each follows the one before and says what was hashed.`
            : `Event ${chain.revision}: ${chain.why}`}
        </p>
        {chain.ok && !fitsCheckpoint && <p>Its end is not the one that the checkpoint signs.</p>}
        {!signature.ok && <p>{signature.why}</p>}
        {firstRevision > 1 && (
          <p>What came before revision {firstRevision} was archived and cut; verify it with its archive.</p>
        )}
      </div>
      <Facts>
        <Fact name="Checkpoint">
          revision {checkpoint.revision}, <Exactly at={checkpoint.time} />
        </Fact>
        <Fact name="Signed by the key with the fingerprint" wide>
          <span class="mono">{signature.fingerprint}</span>{' '}
          <Copy text={signature.fingerprint} label="the fingerprint" />
          <div class="aside">
            This page was told the key by the same coordinator. Compare the fingerprint with one that you got some other
            way; <code>writ audit verify --public-key</code> does it offline.
          </div>
        </Fact>
      </Facts>
    </>
  );
}

async function verify(
  namespace: string,
  signal: AbortSignal,
  tell: (events: number, all: number) => void,
): Promise<Result> {
  if (window.crypto.subtle === undefined)
    throw new Problem(
      0,
      'INSECURE_PAGE',
      'Browsers compute hashes only for pages that came by TLS or from their own machine; `writ audit verify` does it everywhere.',
    );
  // First, so that what is appended meanwhile is not missed: the log is read to there.
  const { checkpoint } = await get<{ checkpoint: Checkpoint }>('/v1/checkpoint', { namespace, signal });
  const end = Number(checkpoint.revision);
  const verifier = new ChainVerifier(namespace);
  let token = '';
  let firstRevision = 1;
  do {
    const page: EventsPage = await get('/v1/events', {
      namespace,
      signal,
      query: { page_size: PAGE_SIZE, page_token: token },
    });
    firstRevision = Number(page.firstRevision ?? 1);
    const events = (page.events ?? []).filter(({ revision }) => Number(revision) <= end);
    for (const event of events) await verifier.take(event);
    tell(verifier.count, end - firstRevision + 1);
    token = events.length < (page.events ?? []).length ? '' : (page.nextPageToken ?? '');
  } while (token !== '');
  return {
    chain: verifier.verdict(firstRevision),
    checkpoint,
    signature: await verifyCheckpoint(checkpoint),
    firstRevision,
  };
}
