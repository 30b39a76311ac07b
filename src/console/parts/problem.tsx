import { asProblem, type Problem } from '../api/problem.js';
import { Foreign, Reason } from './text.js';

/** A call that failed, in words: what happened, where, and what its code means. */
export function ProblemNote({ problem, what }: { readonly problem: Problem; readonly what?: string }) {
  return (
    <div class="note tone-bad" role="alert">
      <p>
        {what !== undefined && <strong>{what} </strong>}
        <Foreign text={problem.detail || `The coordinator answered ${problem.status}.`} />
      </p>
      {problem.violations.length > 0 && (
        <ul>
          {problem.violations.map(({ field, description }) => (
            <li key={field}>
              <code>{field}</code>: <Foreign text={description} />
            </li>
          ))}
        </ul>
      )}
      <p class="aside">
        {problem.status > 0 && `${problem.status} · `}
        <Reason code={problem.reason} words={false} />
      </p>
    </div>
  );
}

/** What a promise came to, shown where it was asked for. */
export const told = (error: unknown, what?: string) => (
  <ProblemNote problem={asProblem(error)} {...(what !== undefined && { what })} />
);
