import { useState } from 'preact/hooks';
import { get } from '../api/client.js';
import { go, hrefOf } from '../router.js';

export const FIND_ID = 'find';

const ID = /^[0-9a-f]{32}$/;

/** Where a thing is shown: a run or a lease by its id, else a resource by its name. */
async function placeOf(text: string): Promise<string> {
  if (!ID.test(text)) return hrefOf('/resource', { name: text });
  const isRun = await get(`/v1/runs/${text}`).then(
    () => true,
    () => false,
  );
  return hrefOf(isRun ? `/runs/${text}` : `/leases/${text}`);
}

/** One field for everything that has a name. */
export function Find() {
  const [text, setText] = useState('');
  const submit = async (event: Event) => {
    event.preventDefault();
    const wanted = text.trim();
    if (wanted === '') return;
    go(await placeOf(wanted));
    setText('');
  };
  return (
    <search class="find">
      <form onSubmit={(event) => void submit(event)}>
        <input
          id={FIND_ID}
          type="search"
          aria-label="Find a resource, a run or a lease"
          placeholder="Resource, run or lease…"
          autocomplete="off"
          spellcheck={false}
          maxLength={1024}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <kbd>/</kbd>
      </form>
    </search>
  );
}
