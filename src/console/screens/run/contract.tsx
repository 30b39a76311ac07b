import type { Allowance, Run } from '../../api/shapes.js';
import { Fact, Facts, Nothing, Panel } from '../../parts/page.js';
import { type Column, Table } from '../../parts/table.js';
import { Countdown, Exactly, Foreign, RunLink } from '../../parts/text.js';
import { inWords, lengthMs } from '../../pure/moments.js';
import { hasEnded, runState } from '../../pure/words.js';

/** What the run is allowed, by whom, for whom, and until when. */
export function Contract({ run }: { readonly run: Run }) {
  const allowed = run.allowed ?? [];
  const maxTtl = lengthMs(run.maxTtl);
  return (
    <Panel title="Contract" about="Nothing widens it, and nothing moves its end.">
      <Facts>
        <Fact name="Created by">
          <Foreign text={run.principal ?? ''} />
        </Fact>
        <Fact name="On behalf of">
          {run.initiator ? (
            <>
              <Foreign text={run.initiator} />
              {run.initiatorVerified === true ? (
                <div class="tone-good">verified</div>
              ) : (
                <div class="tone-warn">as the caller says; not verified</div>
              )}
            </>
          ) : (
            'nobody is named'
          )}
        </Fact>
        <Fact name="End of authority">
          <Authority run={run} />
        </Fact>
        <Fact name="Created">
          <Exactly at={run.createdAt} />
        </Fact>
        {run.endedAt && (
          <Fact name="Ended">
            <Exactly at={run.endedAt} />
          </Fact>
        )}
        {run.goalRevision && (
          <Fact name="Revision of the goal">
            <Foreign text={run.goalRevision} class="mono" />
          </Fact>
        )}
        {maxTtl !== null && <Fact name="Ceiling: longest ttl">{inWords(maxTtl)}</Fact>}
        {run.parentRunId && (
          <Fact name="Part of">
            <RunLink id={run.parentRunId} />
          </Fact>
        )}
        {(run.escalation ?? []).length > 0 && (
          <Fact name="Whom to turn to">
            <ol>
              {run.escalation?.map((who) => (
                <li key={who}>
                  <Foreign text={who} />
                </li>
              ))}
            </ol>
          </Fact>
        )}
      </Facts>
      {allowed.length === 0 ? (
        <Nothing>It may write nothing; it can only propose.</Nothing>
      ) : (
        <Table
          columns={COLUMNS}
          rows={allowed}
          keyOf={({ pattern = '', actions = [] }) => `${pattern} ${actions.join(' ')}`}
        />
      )}
    </Panel>
  );
}

/** What is over counts down to nothing. */
function Authority({ run }: { readonly run: Run }) {
  const state = runState(run.state);
  const over = state === 'STOPPING' || hasEnded(state);
  return (
    <>
      {over ? 'over' : <Countdown until={run.authorityEndsAt} />}
      <div class="aside">
        {over && 'it would have lasted until '}
        <Exactly at={run.authorityEndsAt} />
      </div>
    </>
  );
}

const COLUMNS: readonly Column<Allowance>[] = [
  { name: 'May ask for', cell: ({ pattern = '' }) => <Foreign text={pattern} class="mono" /> },
  {
    name: 'Actions',
    cell: ({ actions = [] }) => (actions.join() === '*' ? 'every action of the map' : actions.join(', ') || 'none'),
  },
];
