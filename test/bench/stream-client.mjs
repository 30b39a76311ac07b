import { randomUUID } from 'node:crypto';

/**
 * The client side of a stream: what is asked is numbered, and each promise is kept by the answer of its number.
 */

/** @import { Clients } from './client.mjs' */

/** Numbers what is asked on one stream and finds the answers. */
class Numbered {
  #stream;
  /** @type {Map<number, { resolve: (answer: any) => void, reject: (error: unknown) => void }>} */
  #waiting = new Map();
  #number = 0;

  /** @param {ReturnType<Clients['open']>} stream @param {(response: any) => readonly any[]} answersOf */
  constructor(stream, answersOf) {
    this.#stream = stream;
    stream.on('data', (response) => {
      for (const answer of answersOf(response)) {
        this.#waiting.get(answer.number)?.resolve(answer.outcome);
        this.#waiting.delete(answer.number);
      }
    });
    const failed = (/** @type {unknown} */ error) => {
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    };
    stream.on('error', failed).on('end', () => failed(new Error('the stream has ended')));
  }

  /** The answer to what is sent, or will be, by this number. @param {number} number @returns {Promise<any>} */
  answer(number) {
    return new Promise((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
  }

  /** @param {any} message */
  write(message) {
    this.#stream.write(message);
  }

  next() {
    this.#number = (this.#number + 1) >>> 0;
    return this.#number;
  }

  close() {
    this.#stream.end();
  }
}

/** Fence checks on one stream. @param {Clients} clients */
export function openChecks(clients) {
  const { streamFenceChecks } = clients.gen.fence.FenceServiceService;
  const numbered = new Numbered(clients.open(streamFenceChecks, 'target'), ({ verdicts }) => verdicts);
  return {
    /** All in one message. @param {readonly any[]} requests */
    async check(requests) {
      const checks = requests.map((check) => ({ number: numbered.next(), check, requestId: '', traceparent: '' }));
      const answers = checks.map(({ number }) => numbered.answer(number));
      numbered.write({ checks });
      for (const outcome of await Promise.all(answers)) {
        if (outcome?.$case !== 'verdict' || !outcome.value.allowed)
          throw new Error(`denied: ${outcome?.value?.message ?? outcome?.value?.results?.[0]?.message}`);
      }
    },
    close: () => numbered.close(),
  };
}

/**
 * A runner's session. Calls of one turn of the event loop travel in one message.
 * @param {Clients} clients
 */
export function openSession(clients) {
  const { gen } = clients;
  const numbered = new Numbered(
    clients.open(gen.lease.LeaseServiceService.session, 'runner'),
    ({ answers }) => answers,
  );
  /** @type {any[]} */
  let together = [];
  /** @param {any} call @returns {Promise<any>} */
  const ask = (call) => {
    if (together.length === 0)
      process.nextTick(() => {
        numbered.write({ calls: together });
        together = [];
      });
    const number = numbered.next();
    together.push({ number, requestId: '', call });
    return numbered.answer(number);
  };
  return {
    /** @param {any} writeSet @returns {Promise<string>} the lease's id */
    async acquire(writeSet) {
      const value = { ...writeSet, idempotencyKey: randomUUID() };
      const answer = await ask({ $case: 'acquireWriteSet', value });
      const { outcome } = answer?.value ?? {};
      if (outcome?.$case !== 'lease')
        throw new Error(`not granted: ${outcome?.value?.message ?? answer?.value?.message}`);
      return outcome.value.leaseId;
    },
    /** @param {string} runId @param {string} leaseId */
    async release(runId, leaseId) {
      const value = { namespace: '', runId, lease: { $case: 'leaseId', value: leaseId } };
      const answer = await ask({ $case: 'releaseLease', value });
      if (answer?.value?.outcome !== gen.lease.ReleaseOutcome.RELEASE_OUTCOME_RELEASED)
        throw new Error(`not released: ${answer?.value?.message ?? answer?.value?.outcome}`);
    },
    close: () => numbered.close(),
  };
}
