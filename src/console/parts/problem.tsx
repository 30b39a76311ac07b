import type { Problem } from '../api/problem.js';
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

interface ReadProblemProps {
  readonly problem: Problem | null;
  /** What is shown was read before. */
  readonly stale: boolean;
}

/** What is shown of something could not be read, or not again: nobody takes what is old for what is. */
export function ReadProblem({ problem, stale }: ReadProblemProps) {
  if (problem === null) return null;
  const old = stale ? 'What is shown here is as it was before.' : '';
  const again = problem.mayPass ? 'It is read again every few seconds.' : '';
  const what = [old, again].filter((text) => text !== '').join(' ');
  return <ProblemNote problem={problem} {...(what !== '' && { what })} />;
}
