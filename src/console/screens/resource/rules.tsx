import type { RuleAbout } from '../../api/shapes.js';
import { Nothing, Panel } from '../../parts/page.js';
import { type Column, Table } from '../../parts/table.js';
import { Foreign, Resource } from '../../parts/text.js';

/** What it implies, what implies it, and what it conflicts with. */
export function Rules({ rules }: { readonly rules: readonly RuleAbout[] }) {
  return (
    <Panel title="Rules that tie it to others" count={rules.length}>
      {rules.length === 0 && <Nothing>None: only what names it meets it.</Nothing>}
      {rules.length > 0 && (
        <Table columns={COLUMNS} rows={rules} keyOf={({ rule, resource }, index) => `${rule} ${resource} ${index}`} />
      )}
    </Panel>
  );
}

const COLUMNS: readonly Column<RuleAbout>[] = [
  { name: 'Rule', fit: 'tight', cell: ({ rule = '' }) => <span class="mono">{rule}</span> },
  {
    name: 'The other',
    cell: ({ resource = '' }) =>
      resource.includes('{') ? <Foreign text={resource} class="mono" /> : <Resource name={resource} />,
  },
  { name: 'In words', cell: ({ message = '' }) => <Foreign text={message} /> },
];
