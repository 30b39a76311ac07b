import { Choice, TextField } from '../../parts/field.js';
import { useParameter } from '../../router.js';

/** What is shown; it is in the address, so that it can be sent to somebody. */
export function Filters() {
  const [resource, setResource] = useParameter('resource');
  const [run, setRun] = useParameter('run');
  const [purpose, setPurpose] = useParameter('purpose');
  const [state, setState] = useParameter('state');
  return (
    <search class="filters">
      <TextField label="Resource has" type="search" value={resource} onChange={setResource} maxLength={1024} />
      <TextField label="Run begins with" type="search" value={run} onChange={setRun} maxLength={32} />
      <TextField label="Purpose has" type="search" value={purpose} onChange={setPurpose} maxLength={256} />
      <Choice
        label="State"
        value={state}
        onChange={setState}
        options={[
          ['', 'Held or waiting'],
          ['held', 'Held'],
          ['waiting', 'Waiting'],
        ]}
      />
    </search>
  );
}
