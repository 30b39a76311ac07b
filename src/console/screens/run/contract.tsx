import type { Allowance, Run } from '../../api/shapes.js';
import { Fact, Facts, Nothing, Panel } from '../../parts/page.js';
import { type Column, Table } from '../../parts/table.js';
import { Countdown, Exactly, Foreign, RunLink } from '../../parts/text.js';
import { inWords, lengthMs } from '../../pure/moments.js';

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
              <Foreign text={run.initiator} />{' '}
              {run.initiatorVerified === true ? (
                <span class="tone-good">verified</span>
              ) : (
                <span class="tone-warn">as the caller says; not verified</span>
              )}
            </>
          ) : (
            'nobody is named'
          )}
        </Fact>
        <Fact name="End of authority">
          <Countdown until={run.authorityEndsAt} />
          <div class="aside">
            <Exactly at={run.authorityEndsAt} />
          </div>
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

const COLUMNS: readonly Column<Allowance>[] = [
  { name: 'May ask for', cell: ({ pattern = '' }) => <Foreign text={pattern} class="mono" /> },
  {
    name: 'Actions',
    cell: ({ actions = [] }) => (actions.join() === '*' ? 'every action of the map' : actions.join(', ') || 'none'),
  },
];
