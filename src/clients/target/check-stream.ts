import type {
  CheckFenceRequest,
  CheckFenceResponse,
  NumberedCheck,
  NumberedVerdict,
  StreamFenceChecksRequest,
  StreamFenceChecksResponse,
} from '../../gen/writ/v1/fence_service.js';
import type { CallOptions } from '../common/channel.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import { NumberedStream, StreamLost } from '../common/numbered-stream.js';

type Question = Omit<NumberedCheck, 'number'>;
type Verdict = NonNullable<NumberedVerdict['outcome']>;
type Stream = NumberedStream<Question, Verdict, StreamFenceChecksRequest, StreamFenceChecksResponse>;

/** One stream for all checks of a client; null: it has none. */
const streams = new WeakMap<WritClient, Stream | null>();

/**
 * Asks on the client's stream, which costs a fraction of a call, and by a call of its own where there is none, or it ends or
 * is silent for half of the time. To ask twice is no harm: a tracked check is known by its request id. Rejects with a
 * WritError, or the signal's reason.
 */
export async function askFence(
  client: WritClient,
  check: CheckFenceRequest,
  options: CallOptions & { readonly timeoutMs: number },
): Promise<CheckFenceResponse> {
  const stream = streamOf(client);
  if (stream === null) return client.fence.checkFence(check, options);
  const { timeoutMs, signal, requestId = '', traceparent = '' } = options;
  const until = performance.now() + timeoutMs;
  const namespace = check.namespace === '' ? client.namespace : check.namespace;
  try {
    const question = { check: { ...check, namespace }, requestId, traceparent };
    const verdict = await stream.ask(question, { timeoutMs, silentMs: timeoutMs / 2 }, signal);
    if (verdict.$case === 'verdict') return verdict.value;
    throw WritError.fromFault(verdict.value);
  } catch (error) {
    if (!mayAskOtherwise(error)) throw error;
  }
  return client.fence.checkFence(check, { ...options, timeoutMs: Math.max(1, until - performance.now()) });
}

function mayAskOtherwise(error: unknown): boolean {
  if (error instanceof StreamLost) return true;
  return error instanceof WritError && error.code === 'UNAVAILABLE';
}

function streamOf(client: WritClient): Stream | null {
  let stream = streams.get(client);
  if (stream === undefined) {
    stream = makeStream(client.fence.streamFenceChecks as WritClient['fence']['streamFenceChecks'] | undefined);
    streams.set(client, stream);
  }
  return stream;
}

function makeStream(open: WritClient['fence']['streamFenceChecks'] | undefined): Stream | null {
  if (open === undefined) return null;
  return new NumberedStream({
    open: (signal) => open({ signal }),
    requestOf: (questions) => ({ checks: questions.map(({ number, question }) => ({ number, ...question })) }),
    read({ verdicts, goingAway }, answered) {
      for (const { number, outcome } of verdicts) answered(number, outcome ?? NO_VERDICT);
      return { goingAway };
    },
  });
}

/** Something that this client does not know. */
const NO_VERDICT: Verdict = {
  $case: 'fault',
  value: { code: 13, message: 'an answer without a verdict', details: [] },
};
