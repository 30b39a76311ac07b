import { useMemo } from 'preact/hooks';
import type { LogEvent } from '../../api/shapes.js';
import { Nothing, Panel } from '../../parts/page.js';
import { type Column, Table } from '../../parts/table.js';
import { Exactly, LeaseLink, RunLink } from '../../parts/text.js';
import { type TokenGiven, tokensOf } from '../../pure/resource-history.js';
import { inLowerCase } from '../../pure/words.js';

interface TokensProps {
  readonly name: string;
  readonly events: readonly LogEvent[];
  readonly loading: boolean;
  readonly complete: boolean;
}

const SHOWN = 20;

/** Who had which token: for ever increasing, so that a target knows old from new. */
export function Tokens({ name, events, loading, complete }: TokensProps) {
  const tokens = useMemo(() => tokensOf(events, name), [events, name]);
  return (
    <Panel
      title="Tokens"
      count={loading ? undefined : tokens.length}
      about={complete ? 'Newest first.' : 'Newest first, of the events that are shown below.'}
    >
      {!loading && tokens.length === 0 && <Nothing>No token was given out for it under its own name.</Nothing>}
      {tokens.length > 0 && <Table columns={COLUMNS} rows={tokens.slice(0, SHOWN)} keyOf={({ token }) => token} />}
    </Panel>
  );
}

const COLUMNS: readonly Column<TokenGiven>[] = [
  { name: 'Token', fit: 'tight', cell: ({ token }) => <span class="mono">{token}</span> },
  { name: 'Run', fit: 'tight', cell: ({ runId }) => <RunLink id={runId} /> },
  { name: 'Lease', fit: 'tight', cell: ({ leaseId }) => <LeaseLink id={leaseId} /> },
  {
    name: 'For',
    cell: ({ access, cause }) => (
      <>
        {inLowerCase(access)}
        {cause !== '' && <span class="aside"> · {inLowerCase(cause)}</span>}
      </>
    ),
  },
  { name: 'Given', fit: 'tight', cell: ({ time }) => <Exactly at={time} /> },
];
