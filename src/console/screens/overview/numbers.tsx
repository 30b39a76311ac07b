import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Namespace } from '../../api/shapes.js';
import { ReadProblem } from '../../parts/problem.js';
import { Link, useNamespace } from '../../router.js';

const REST_MS = 2_000;

/** The namespace in numbers. */
export function Numbers() {
  const namespace = useNamespace();
  const { value, problem } = useData(
    'namespace',
    (signal) => get<{ namespace?: Namespace }>(`/v1/namespaces/${namespace}`, { signal, namespace: null }),
    { restMs: REST_MS },
  );
  if (value === undefined && problem !== null) return <ReadProblem problem={problem} stale={false} />;
  const { liveRuns, liveLeases, waitingRequests, conflictMapVersion, logRevision } = value?.namespace ?? {};
  const known = value !== undefined;
  return (
    <ul class="numbers" aria-label="The namespace in numbers">
      <Figure name="Runs" to="/runs" number={known ? (liveRuns ?? 0) : undefined} />
      <Figure name="Live leases" to="/live" number={known ? (liveLeases ?? 0) : undefined} />
      <Figure
        name="Waiting"
        to="/live"
        query={{ view: 'waiting' }}
        number={known ? (waitingRequests ?? 0) : undefined}
      />
      <Figure name="Conflict map" to="/map" number={known ? Number(conflictMapVersion ?? 0) : undefined} before="v" />
      <Figure name="Log revision" to="/log" number={known ? Number(logRevision ?? 0) : undefined} />
    </ul>
  );
}

interface FigureProps {
  readonly name: string;
  readonly to: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly number: number | undefined;
  readonly before?: string;
}

function Figure({ name, to, query = {}, number, before = '' }: FigureProps) {
  return (
    <li>
      <Link to={to} query={query}>
        <strong>{number === undefined ? '–' : `${before}${number.toLocaleString('en')}`}</strong>
        <span>{name}</span>
      </Link>
    </li>
  );
}
