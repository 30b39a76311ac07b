import { randomUUID } from 'node:crypto';
import { type Bounds, Decision, type LoadedRecords, NeedsLoad, NOTHING_LOADED } from '../domain/decide/decision.js';
import type { DomainEvent } from '../domain/event.js';
import { evolve } from '../domain/evolve.js';
import { bindingId, type Overlay, overlay, type State } from '../domain/state.js';
import type { Micros } from '../domain/time.js';
import type { AppendBatch, DatabaseIdentity, EventRecord, Head, MapVersion } from '../storage/store.js';
import { canonicalJson } from './canonical-json.js';
import { BODY_VERSION, encodeBody } from './event-codec.js';
import { withoutText } from './event-texts.js';
import { hashEvent } from './hash-chain.js';
import { randomId } from './random-id.js';

/** A command on its way: what decides it, and who waits for the answer. */
export interface Command<R = unknown> {
  readonly actor: string;
  readonly decide: (decision: Decision) => R;
  /** In a batch of its own: changes of the conflict map, of which a batch can hold one. */
  readonly alone: boolean;
  loaded: LoadedRecords;
  readonly resolve: (answer: { value: R; revision: number; now: Micros }) => void;
  readonly reject: (error: unknown) => void;
}

/** How one command of a batch came out, not yet acknowledged. */
type Outcome =
  | { readonly value: unknown; readonly revision: number; readonly now: Micros }
  | { readonly error: unknown };

/** A batch as decided in memory: what would be written, and how each command would be answered. */
export interface Plan {
  readonly overlay: Overlay;
  readonly batch: AppendBatch | null;
  readonly events: readonly DomainEvent[];
  readonly outcomes: readonly Outcome[];
  /** Commands that wait for records to be loaded; nothing may be written before. */
  readonly missing: readonly { readonly command: Command; readonly wanted: NeedsLoad['wanted'] }[];
}

export interface PlanContext {
  readonly base: State;
  readonly head: Head;
  readonly bounds: Bounds;
  readonly identity: DatabaseIdentity | null;
}

/** A batch in the making: decides commands one after another on an overlay; the base stays as it is (P7). */
export class Planning {
  readonly commands: Command[] = [];
  private layer: Overlay;
  private readonly batchId = randomUUID();
  private readonly events: DomainEvent[] = [];
  private readonly records: EventRecord[] = [];
  private readonly outcomes: Outcome[] = [];
  private readonly missing: { command: Command; wanted: NeedsLoad['wanted'] }[] = [];
  private readonly newKeys: { scope: string; key: string }[] = [];
  private past: Micros | null = null;
  private future: Micros | null = null;
  private base: State;

  constructor(private readonly context: PlanContext) {
    this.base = context.base;
    this.layer = overlay(context.base);
  }

  /** `clock`: a lower bound of the database clock. Throws when what was decided has no form in the log. */
  add(command: Command, clock: Micros): void {
    const { context } = this;
    this.commands.push(command);
    const decision = new Decision(this.layer, clock, command.actor, context.bounds, command.loaded);
    let outcome: Outcome;
    try {
      const value = command.decide(decision);
      outcome = { value, revision: this.layer.revision, now: decision.now };
    } catch (error) {
      if (error instanceof NeedsLoad) this.missing.push({ command, wanted: error.wanted });
      outcome = { error };
      // What a failed command had emitted is not to be written: begin again without it.
      if (decision.events.length > 0) this.layer = replay(this.base, this.events);
    }
    if ('value' in outcome) this.write(decision.events);
    this.newKeys.push(...decision.newKeys);
    // The append proves that keys are new; what is answered without an event must have looked them up (P6).
    const unproven = decision.newKeys.find(({ scope, key }) => !command.loaded.keys.has(bindingId(scope, key)));
    if (unproven !== undefined && ('error' in outcome || decision.events.length === 0))
      this.missing.push({ command, wanted: { key: unproven } });
    const { reliedOnAsPast, reliedOnAsFuture } = decision;
    if (reliedOnAsPast !== null) this.past = Math.max(this.past ?? 0, reliedOnAsPast);
    if (reliedOnAsFuture !== null) this.future = Math.min(this.future ?? Number.POSITIVE_INFINITY, reliedOnAsFuture);
    this.outcomes.push(outcome);
  }

  private write(events: readonly DomainEvent[]): void {
    const head = this.records.at(-1) ?? this.context.head;
    this.records.push(...toRecords(this.context.base.namespace, this.batchId, head, events));
    this.events.push(...events);
  }

  plan(): Plan {
    const { layer, events, outcomes, missing } = this;
    return { overlay: layer, events, outcomes, missing, batch: events.length === 0 ? null : this.batch() };
  }

  private batch(): AppendBatch {
    const { context, layer, batchId, records, events } = this;
    return {
      namespace: context.base.namespace,
      batchId,
      expectedHead: context.head.revision === 0 ? null : context.head,
      identity: context.identity,
      events: records,
      leases: layer.leases.changed(),
      runs: layer.runs.changed(),
      keys: layer.keys.changed(),
      unmatched: layer.unmatched.changed(),
      revocations: layer.revocations.changed(),
      admissions: layer.admissions.changed(),
      rehearsals: layer.rehearsals.changed(),
      freezes: layer.freezes.changed(),
      thawed: layer.freezes.deleted(),
      mapVersion: mapVersionOf(events),
      newKeys: distinct(this.newKeys),
      reliedOnAsPast: this.past,
      reliedOnAsFuture: this.future,
    };
  }

  /**
   * What was decided on top of a batch that was on its way holds now that the batch is acknowledged: it goes on over the
   * state that it became.
   */
  rebase(onto: State): void {
    if (this.base === onto) return;
    this.base = onto;
    this.layer.rebase(onto);
  }
}

/** Decides commands, all at one time. */
export function planBatch(context: PlanContext & { readonly clock: Micros }, commands: readonly Command[]): Plan {
  const planning = new Planning(context);
  for (const command of commands) planning.add(command, context.clock);
  return planning.plan();
}

function replay(base: State, events: readonly DomainEvent[]): Overlay {
  const layer = overlay(base);
  for (const event of events) evolve(layer, event, layer.revision + 1);
  return layer;
}

/**
 * All keys that were looked up and not known, also those of refusals, which bind nothing: a retry of a grant must
 * not be told that its own lease is in the way (F1).
 */
function distinct(newKeys: readonly { scope: string; key: string }[]): { scope: string; key: string }[] {
  return [...new Map(newKeys.map((one) => [bindingId(one.scope, one.key), one])).values()];
}

function mapVersionOf(events: readonly DomainEvent[]): MapVersion | null {
  for (const { body, actor, time } of events) {
    if (body.kind !== 'conflict_map_put') continue;
    const { version, text, document, reason } = body;
    return { version, text, document: canonicalJson(document), author: actor, reason, createdAt: time };
  }
  return null;
}

/** The rows of the log, each with the hash of the one before (P7). */
export function toRecords(
  namespace: string,
  batchId: string,
  head: Head,
  events: readonly DomainEvent[],
  salt: () => string = randomId,
): EventRecord[] {
  let { revision, hash } = head;
  return events.map((event) => {
    revision += 1;
    const { body, texts } = withoutText(event.body, salt);
    const record = {
      namespace,
      revision,
      time: event.time,
      batchId,
      kind: event.body.kind,
      bodyVersion: texts.length === 0 ? BODY_VERSION.plain : BODY_VERSION.withoutText,
      actor: event.actor,
      runId: event.runId,
      leaseId: event.leaseId,
      resources: event.resources,
      requestIds: event.requestIds,
      body: encodeBody(body),
      prevHash: hash,
      hash: '',
      texts,
    };
    hash = hashEvent(record);
    record.hash = hash;
    return record;
  });
}

/** A fresh command. */
export function newCommand<R>(
  actor: string,
  decide: (decision: Decision) => R,
  alone: boolean,
): { command: Command; answer: Promise<{ value: R; revision: number; now: Micros }> } {
  let command!: Command<R>;
  const answer = new Promise<{ value: R; revision: number; now: Micros }>((resolve, reject) => {
    command = { actor, decide, alone, loaded: NOTHING_LOADED, resolve, reject };
  });
  return { command: command as Command, answer };
}
