import { Choice, TextField } from '../../parts/field.js';
import { EVENT_KINDS } from '../../pure/event-words.js';
import { inLowerCase } from '../../pure/words.js';
import { useParameter } from '../../router.js';

const KINDS = [
  ['', 'All but upkeep'],
  ['any', 'Any'],
  ...EVENT_KINDS.map((kind) => [kind, inLowerCase(kind)] as const),
] as const;

/** What is looked for; it is in the address. */
export function LogFilters() {
  const [request, setRequest] = useParameter('request');
  const [run, setRun] = useParameter('run');
  const [lease, setLease] = useParameter('lease');
  const [resource, setResource] = useParameter('resource');
  const [kind, setKind] = useParameter('kind');
  const [actor, setActor] = useParameter('actor');
  const [reason, setReason] = useParameter('reason');
  const [order, setOrder] = useParameter('order');
  return (
    <search class="filters log-filters">
      <TextField label="Request id (why)" type="search" value={request} onChange={setRequest} maxLength={128} />
      <TextField label="Resource" type="search" value={resource} onChange={setResource} maxLength={1024} />
      <TextField label="Run" type="search" value={run} onChange={setRun} maxLength={32} />
      <TextField label="Lease" type="search" value={lease} onChange={setLease} maxLength={32} />
      <Choice label="Kind" value={kind} onChange={setKind} options={KINDS} />
      <TextField label="Actor has" type="search" value={actor} onChange={setActor} maxLength={256} />
      <TextField label="Reason has" type="search" value={reason} onChange={setReason} maxLength={256} />
      <Choice
        label="Order"
        value={order}
        onChange={setOrder}
        options={[
          ['', 'Newest first'],
          ['oldest', 'Oldest first'],
        ]}
      />
    </search>
  );
}
