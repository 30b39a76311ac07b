import { useState } from 'preact/hooks';
import { get, post } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Answer, TaskPair } from '../../api/shapes.js';
import { useRested } from '../../clock.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ProblemNote } from '../../parts/problem.js';
import { Foreign } from '../../parts/text.js';

type MatrixAnswer = Answer<'GetTaskMatrixResponse'>;

const REST_MS = 600;

/** Which pairs of tasks can collide, and why; of the edit, if there is one. */
export function Matrix({ document, version }: { readonly document: string; readonly version: string }) {
  const text = useRested(document, REST_MS);
  const [chosen, setChosen] = useState<TaskPair | null>(null);
  const { value, problem } = useData(
    `matrix ${version} ${text}`,
    (signal) =>
      text === ''
        ? get<MatrixAnswer>('/v1/conflict-map/matrix', { signal })
        : post<MatrixAnswer>('/v1/conflict-map/matrix', { document: text }, { signal }),
    { live: false },
  );
  const pairs = value?.pairs ?? [];
  const tasks = [...new Set(pairs.flatMap(({ taskA = '', taskB = '' }) => [taskA, taskB]))].sort();
  return (
    <Panel
      title="Task matrix"
      count={value === undefined ? undefined : tasks.length}
      about={text === '' ? 'Of the current map.' : 'Of the text as it is edited, not applied yet.'}
    >
      {problem !== null && <ProblemNote problem={problem} />}
      {value !== undefined && tasks.length === 0 && <Nothing>The map names no tasks.</Nothing>}
      {tasks.length > 0 && (
        <div class="matrix">
          <table>
            <thead>
              <tr>
                <td />
                {tasks.map((task) => (
                  <th key={task} scope="col">
                    <Foreign text={task} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {tasks.map((row) => (
                <tr key={row}>
                  <th scope="row">
                    <Foreign text={row} />
                  </th>
                  {tasks.map((column) => (
                    <td key={column}>
                      <Cell pair={pairOf(pairs, row, column)} chosen={chosen} onChoose={setChosen} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {tasks.length > 0 && <Legend />}
      {chosen !== null && <Why pair={chosen} />}
    </Panel>
  );
}

/** What the words in the cells mean, with the task's parameters in mind. */
function Legend() {
  return (
    <dl class="legend">
      {LEGEND.map(([word, tone, meaning]) => (
        <div key={word}>
          <dt class={`tone-${tone}`}>{word}</dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}

const LEGEND = [
  ['always', 'bad', 'two runs of them are never at work at once, whatever their parameters'],
  ['can', 'warn', 'they exclude each other with some parameters, such as the same tenant'],
  ['inputs', 'warn', 'they can be at work at once, and one changes what the other has read'],
  ['never', 'idle', 'they do not meet; choose a cell to see why'],
] as const;

const pairOf = (pairs: readonly TaskPair[], a: string, b: string): TaskPair | undefined =>
  pairs.find(({ taskA, taskB }) => (taskA === a && taskB === b) || (taskA === b && taskB === a));

interface CellProps {
  readonly pair: TaskPair | undefined;
  readonly chosen: TaskPair | null;
  readonly onChoose: (pair: TaskPair) => void;
}

function Cell({ pair, chosen, onChoose }: CellProps) {
  if (pair === undefined) return null;
  const inputs = (pair.inputChanges ?? []).length > 0;
  const words = pair.always === true ? 'always' : pair.canCollide === true ? 'can' : inputs ? 'inputs' : 'never';
  const tone = pair.always === true ? 'bad' : pair.canCollide === true || inputs ? 'warn' : 'idle';
  return (
    <button
      type="button"
      class={`quiet small tone-${tone}`}
      aria-pressed={pair === chosen}
      aria-label={`${pair.taskA} and ${pair.taskB}: ${words}`}
      onClick={() => onChoose(pair)}
    >
      {words}
    </button>
  );
}

function Why({ pair }: { readonly pair: TaskPair }) {
  const because = pair.because ?? [];
  const inputs = pair.inputChanges ?? [];
  return (
    <div class="body form" aria-live="polite">
      <h3>
        <Foreign text={pair.taskA ?? ''} /> and <Foreign text={pair.taskB ?? ''} />
      </h3>
      {because.length === 0 && inputs.length === 0 && <p>They never meet.</p>}
      <ul class="bullets">
        {because.map((reason) => (
          <li key={reason}>
            <Foreign text={reason} />
          </li>
        ))}
        {inputs.map((reason) => (
          <li key={reason}>
            <Foreign text={reason} />
          </li>
        ))}
      </ul>
    </div>
  );
}
