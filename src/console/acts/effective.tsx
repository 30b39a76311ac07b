import type { OpenWrite } from '../api/shapes.js';
import { databaseNow } from '../clock.js';
import { OpenWrites } from '../parts/open-writes.js';
import { Countdown, Exactly } from '../parts/text.js';
import { millisOf } from '../pure/moments.js';

/** From when an end is in force, and what it left open. */
export function Effective({ at, open }: { readonly at: string | undefined; readonly open: readonly OpenWrite[] }) {
  const later = (millisOf(at) ?? 0) > databaseNow();
  return (
    <>
      <p>
        {at === undefined ? (
          'It held nothing, so there is nothing to wait for.'
        ) : later ? (
          <>
            In force everywhere in <Countdown until={at} /> (<Exactly at={at} />
            ): some targets decide by a view or a credential that they have. Until then nobody else is granted what it
            held. Targets that ask refuse its tokens now.
          </>
        ) : (
          <>
            In force everywhere since <Exactly at={at} />.
          </>
        )}
      </p>
      {open.length === 0 ? (
        <p>Nothing is open: the outcome of every write that was let in is known.</p>
      ) : (
        <>
          <p>
            <strong>Still open:</strong> these writes were let in before, and nobody knows yet what became of them.
            Their resources are granted to nobody until that is known.
          </p>
          <OpenWrites writes={open} />
        </>
      )}
    </>
  );
}
