import type { EventBody } from '../../../../src/domain/event.js';
import { promise } from '../violation.js';
import type { Facts } from './facts.js';

export function runCreated(facts: Facts, body: Extract<EventBody, { kind: 'run_created' }>): void {
  promise(!facts.runs.has(body.run.runId), `P6: run ${body.run.runId} is made twice`);
  facts.runs.set(body.run.runId, {
    principal: body.run.principal,
    parentRunId: body.run.parentRunId,
    authorityEndsAt: body.run.authorityEndsAt,
    ended: false,
    mayAcquire: true,
    state: 'active',
  });
  facts.bind(`principal:${body.run.principal}`, body.run.idempotencyKey, '', 'create_run', body.fingerprint);
}

export function runStateChanged(facts: Facts, body: Extract<EventBody, { kind: 'run_state_changed' }>): void {
  const run = facts.run(body.runId);
  promise(!run.ended, `P6: run ${body.runId} changed after its end`);
  const ended = body.endedAt !== null;
  if (run.state === 'stopping') promise(ended, `R4: run ${body.runId} is ${body.state} after it was stopped`);
  const mayAcquire = !ended && body.state !== 'blocked' && body.state !== 'stopping';
  facts.runs.set(body.runId, { ...run, ended, mayAcquire, state: body.state });
}
