import type { Principal } from '../../auth/principal.js';
import { authorize } from '../../auth/roles.js';
import { Fault, invalidArgument } from '../../domain/fault.js';
import type * as wire from '../../gen/writ/v1/fence_service.js';
import type { WritApi } from '../../services/api.js';
import type { FenceWatch, WatchFencesInput } from '../../services/fence-watches.js';
import { toUpdate } from '../messages/fence-updates.js';
import { orDefault } from '../namespace-of.js';
import type { Attendant, Conversation, Talk } from './conversation.js';

/** What waits for a reader is bounded. */
const TOLD_AT_ONCE = 1_000;
const METHOD = 'FenceService/WatchFences';

/** WatchFences: told as fast as the caller reads, and no faster than changes are made. */
export function fenceWatch(api: WritApi): Talk<wire.WatchFencesRequest, wire.FenceUpdate, wire.WatchFencesResponse> {
  return {
    frameOf: (updates) => ({ updates: updates.slice(), goingAway: false }),
    weightOf: ({ update }) => (update?.$case === 'fence' ? update.value.entries.length : 1),
    goingAway: () => ({ updates: [], goingAway: true }),
    attend: (conversation) => new Watching(conversation, api),
  };
}

class Watching implements Attendant<wire.WatchFencesRequest> {
  /** Nothing that was asked is owed: a ping that is not answered when the stream ends proves nothing. */
  readonly isIdle = true;
  #namespace: string | undefined;
  #watch: FenceWatch | undefined;
  /** Before the watch is there. */
  #pinged: number | undefined;
  #isClosed = false;

  constructor(
    private readonly conversation: Conversation<wire.WatchFencesRequest, wire.FenceUpdate>,
    private readonly api: WritApi,
  ) {}

  heard({ said }: wire.WatchFencesRequest): void {
    if (said === undefined) throw invalidArgument([{ field: 'said', description: 'is required' }]);
    if ((said.$case === 'open') !== (this.#namespace === undefined)) throw outOfTurn(said.$case);
    if (said.$case === 'open') this.#open(said.value);
    else {
      const number = countOf(said.value.number, 'ping.number');
      if (this.#watch === undefined) this.#pinged = number;
      else this.#watch.ping(number);
    }
  }

  stillKnown(principal: Principal): void {
    authorize(principal, METHOD, this.#namespace ?? null);
  }

  closed(): void {
    this.#isClosed = true;
    this.#watch?.close();
  }

  #open({ namespace, resumeFrom, viewKindsOnly }: wire.WatchFencesOpen): void {
    const { call } = this.conversation;
    this.#namespace = orDefault(namespace);
    const principal = authorize(call.principal, METHOD, this.#namespace);
    const { requestId, signal } = call;
    const context = { principal, namespace, requestId, deadlineMs: null, signal };
    const from =
      resumeFrom === undefined
        ? null
        : { revision: countOf(resumeFrom.revision, 'open.resume_from.revision'), hash: resumeFrom.hash };
    this.#tell(context, { from, viewKindsOnly }).catch((error: unknown) => {
      if (!this.#isClosed) call.fail(error);
    });
  }

  async #tell(context: Parameters<WritApi['watchFences']>[0], input: WatchFencesInput): Promise<void> {
    const watch = await this.api.watchFences(context, input);
    this.#watch = watch;
    if (this.#isClosed) watch.close();
    if (this.#pinged !== undefined) watch.ping(this.#pinged);
    while (!this.#isClosed) {
      const updates = await watch.next();
      for (let start = 0; start < updates.length; start += TOLD_AT_ONCE) {
        for (const update of updates.slice(start, start + TOLD_AT_ONCE)) this.conversation.say(toUpdate(update));
        await this.conversation.sent();
      }
    }
  }
}

function outOfTurn(said: string): Fault {
  const text = said === 'open' ? 'a watch is opened once, by the first message' : 'the first message opens the watch';
  return new Fault('invalid_argument', 'INVALID_ARGUMENT', text, {
    violations: [{ field: said, description: text }],
  });
}

/** As a number; what no double holds exactly is no number of ours. */
function countOf(value: bigint, field: string): number {
  if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  throw invalidArgument([{ field, description: 'must be below 2^53' }]);
}
