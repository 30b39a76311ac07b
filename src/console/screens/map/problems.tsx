import type { MapProblem } from '../../api/shapes.js';
import { Nothing } from '../../parts/page.js';
import { ProblemNote } from '../../parts/problem.js';
import { Foreign, Reason } from '../../parts/text.js';
import { counted } from '../../pure/words.js';
import type { Validation } from './validation.js';

interface ProblemsProps extends Validation {
  readonly onChoose: (problem: MapProblem) => void;
}

const SHOWN = 100;

/** What is wrong, and what is doubtful; each leads to its place in the text. */
export function Problems({ state, valid, problems, failure, onChoose }: ProblemsProps) {
  const errors = problems.filter(({ warning }) => warning !== true);
  const warnings = problems.filter(({ warning }) => warning === true);
  return (
    <div aria-live="polite" aria-busy={state === 'checking'}>
      {failure !== null && <ProblemNote problem={failure} what="The text could not be checked." />}
      {state !== 'checking' && valid && problems.length === 0 && (
        <Nothing>No errors, no warnings, and every assertion holds.</Nothing>
      )}
      {problems.length > 0 && (
        <>
          <p class="body">
            {errors.length === 0 ? (
              <span class="tone-good">It would be taken; every assertion holds.</span>
            ) : (
              <span class="tone-bad">{counted(errors.length, 'error')}.</span>
            )}{' '}
            {warnings.length > 0 && <span class="tone-warn">{counted(warnings.length, 'warning')}.</span>}
          </p>
          <ul class="problems">
            {[...errors, ...warnings].slice(0, SHOWN).map((problem, index) => (
              <li key={`${problem.line} ${problem.column} ${problem.code} ${index}`}>
                <button type="button" class="quiet problem" onClick={() => onChoose(problem)}>
                  <span class={`place ${problem.warning === true ? 'tone-warn' : 'tone-bad'}`}>
                    {problem.line ? `${problem.line}:${problem.column ?? 0}` : '–'}
                  </span>
                  <span>
                    <Foreign text={problem.message ?? ''} />
                    {problem.path && (
                      <span class="aside">
                        {' '}
                        at <Foreign text={problem.path} class="mono" />
                      </span>
                    )}
                  </span>
                </button>
                <Reason code={problem.code ?? ''} words={false} />
              </li>
            ))}
          </ul>
          {problems.length > SHOWN && <p class="body aside">and {problems.length - SHOWN} more</p>}
        </>
      )}
    </div>
  );
}
