import { useState } from 'preact/hooks';
import { post } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';
import type { Answer, ConflictStep, LeaseEntry, Refusal } from '../../api/shapes.js';
import { Covered } from '../../parts/cells.js';
import { Field } from '../../parts/field.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ProblemNote } from '../../parts/problem.js';
import { type Column, Table } from '../../parts/table.js';
import { Foreign, Reason, Resource } from '../../parts/text.js';
import { access, refusalKind } from '../../pure/words.js';
import { readWriteSet } from '../../pure/write-set-text.js';
import { useParameter } from '../../router.js';

type Told = Answer<'ExplainConflictResponse'>;

/** Whether two write sets exclude each other, every step by rule. */
export function Explain({ document }: { readonly document: string }) {
  const [a, setA] = useParameter('a');
  const [b, setB] = useParameter('b');
  const [answer, setAnswer] = useState<Told | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const readA = readWriteSet(a);
  const readB = readWriteSet(b);
  const submit = async (event: Event) => {
    event.preventDefault();
    if ('error' in readA || 'error' in readB) return;
    setProblem(null);
    try {
      const body = { a: readA.value, b: readB.value, ...(document !== '' && { document }) };
      setAnswer(await post<Told>('/v1/conflict-map/explain', body));
    } catch (error) {
      setAnswer(null);
      setProblem(asProblem(error));
    }
  };
  return (
    <>
      <Panel
        title="Two write sets"
        about={document === '' ? 'By the current map.' : 'By the text as it is edited, not applied yet.'}
      >
        <form class="form" onSubmit={(event) => void submit(event)}>
          <div class="columns">
            <Side
              label="One run asks for"
              value={a}
              onChange={setA}
              error={'error' in readA && a !== '' ? readA.error : undefined}
            />
            <Side
              label="Another asks for"
              value={b}
              onChange={setB}
              error={'error' in readB && b !== '' ? readB.error : undefined}
            />
          </div>
          <p class="hint">
            One entry to a line, such as <code>write release/prod-eu promote</code>, <code>stable_read dns/eu</code> or{' '}
            <code>write tenant/1842/**</code> with all below it. Or a task: <code>task rotate-token tenant=acme</code>.
          </p>
          <div class="buttons">
            <button type="submit" class="primary" disabled={'error' in readA || 'error' in readB}>
              Explain
            </button>
          </div>
        </form>
      </Panel>
      <div aria-live="polite" class="form">
        {problem !== null && <ProblemNote problem={problem} />}
        {answer !== null && <Explained answer={answer} />}
      </div>
    </>
  );
}

interface SideProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly error: string | undefined;
}

function Side({ label, value, onChange, error }: SideProps) {
  return (
    <Field label={label} error={error}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="mono"
          rows={4}
          spellcheck={false}
          maxLength={8_192}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function Explained({ answer }: { readonly answer: Told }) {
  const { conflict = false, steps = [], entriesA = [], entriesB = [], refusalA, refusalB } = answer;
  return (
    <>
      <div class={`note tone-${conflict ? 'bad' : 'good'}`}>
        <p>
          <strong>{conflict ? 'They conflict: two runs cannot hold both at once.' : 'They do not conflict.'}</strong>
        </p>
      </div>
      {steps.length > 0 && (
        <Panel title="Where they meet" count={steps.length}>
          <Table columns={STEP_COLUMNS} rows={steps} keyOf={({ key }, index) => `${key} ${index}`} />
        </Panel>
      )}
      <div class="columns">
        <Expanded title="What the one expands to" entries={entriesA} refusal={refusalA} />
        <Expanded title="What the other expands to" entries={entriesB} refusal={refusalB} />
      </div>
    </>
  );
}

const STEP_COLUMNS: readonly Column<ConflictStep>[] = [
  { name: 'At', cell: ({ key = '' }) => <Foreign text={key} class="mono" /> },
  { name: 'One', cell: ({ modeA, resourceA, ruleA }) => <Mode mode={modeA} resource={resourceA} rule={ruleA} /> },
  { name: 'The other', cell: ({ modeB, resourceB, ruleB }) => <Mode mode={modeB} resource={resourceB} rule={ruleB} /> },
  { name: 'In words', cell: ({ message = '' }) => <Foreign text={message} /> },
];

const ENTRY_COLUMNS: readonly Column<LeaseEntry>[] = [
  { name: 'Resource', cell: (entry) => <Covered entry={entry} /> },
  {
    name: 'Access',
    cell: ({ access: how, actions = [] }) => (
      <>
        {access(how)}
        {actions.length > 0 && <div class="aside">{actions.join(', ')}</div>}
      </>
    ),
  },
  { name: 'Rule', cell: ({ impliedBy }) => <span class="mono">{impliedBy || '–'}</span> },
];

interface ModeProps {
  readonly mode: string | undefined;
  readonly resource: string | undefined;
  readonly rule: string | undefined;
}

function Mode({ mode = '', resource = '', rule = '' }: ModeProps) {
  return (
    <>
      <strong class="mono">{mode}</strong> for <Resource name={resource} />
      {rule !== '' && <div class="aside">by {rule}</div>}
    </>
  );
}

interface ExpandedProps {
  readonly title: string;
  readonly entries: readonly LeaseEntry[];
  readonly refusal: Refusal | undefined;
}

function Expanded({ title, entries, refusal }: ExpandedProps) {
  return (
    <Panel title={title} count={entries.length}>
      {refusal !== undefined && (
        <div class="note tone-warn">
          <p>
            On its own it would be refused as <Reason code={refusalKind(refusal.kind)} />:{' '}
            <Foreign text={refusal.message ?? ''} />
          </p>
        </div>
      )}
      {entries.length === 0 && refusal === undefined && <Nothing>Nothing.</Nothing>}
      {entries.length > 0 && (
        <Table columns={ENTRY_COLUMNS} rows={entries} keyOf={({ resource }, index) => `${resource} ${index}`} />
      )}
    </Panel>
  );
}
