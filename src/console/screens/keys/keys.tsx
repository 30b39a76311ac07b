import { useState } from 'preact/hooks';
import { get, post } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Answer, SigningKey } from '../../api/shapes.js';
import { ActDialog } from '../../parts/act-dialog.js';
import { Nothing, Page, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { type Column, Table } from '../../parts/table.js';
import { Exactly, State } from '../../parts/text.js';
import { useMay } from '../../principal.js';
import { codeOf } from '../../pure/words.js';

type Keys = Answer<'ListSigningKeysResponse'>;

type Changed = Answer<'RotateSigningKeyResponse'>;

const stateOf = ({ state }: SigningKey): string => codeOf(state, 'SIGNING_KEY_STATE');

/** The keys that sign credentials, for the whole installation. */
export function KeysScreen() {
  const may = useMay();
  const [rotating, setRotating] = useState(false);
  const [retiring, setRetiring] = useState<SigningKey | null>(null);
  const { value, problem, reload } = useData('keys', (signal) => get<Keys>('/v1/keys', { signal, namespace: null }), {
    touchedBy: ({ kind }) => kind === 'signing_keys_changed',
    ofNamespace: false,
  });
  const keys = value?.keys ?? [];
  const columns = may('CredentialService/RetireSigningKey') ? [...COLUMNS, retirement(setRetiring)] : COLUMNS;
  const close = () => {
    setRotating(false);
    setRetiring(null);
    reload();
  };
  return (
    <Page
      title="Keys"
      about="They sign the credentials of the whole installation, in every namespace."
      actions={
        may('CredentialService/RotateSigningKey') && (
          <button type="button" onClick={() => setRotating(true)}>
            Rotate…
          </button>
        )
      }
    >
      <Panel title="Signing keys" count={value === undefined ? undefined : keys.length}>
        <ReadProblem problem={problem} stale={value !== undefined} />
        {value !== undefined && keys.length === 0 && <Nothing>There is no key: credentials are off.</Nothing>}
        {keys.length > 0 && <Table columns={columns} rows={keys} keyOf={({ keyId }) => keyId} />}
      </Panel>
      {rotating && <Rotate onClose={close} />}
      {retiring !== null && <Retire signingKey={retiring} onClose={close} />}
    </Page>
  );
}

function Rotate({ onClose }: { readonly onClose: () => void }) {
  const [force, setForce] = useState(false);
  return (
    <ActDialog
      title="Rotate the signing key"
      button={force ? 'Rotate at once' : 'Rotate'}
      danger={force}
      act={(reason) => post<Changed>('/v1/keys/rotate', { reason, force }, { namespace: null })}
      result={({ changed = [] }) => <ChangedKeys keys={changed} />}
      onClose={onClose}
    >
      <p>
        The next key, which verifiers have known for a while, signs from now on; the current one stays published until
        what it signed has ended; and a new next one is made.
      </p>
      <label class="tick">
        <input type="checkbox" checked={force} onChange={(event) => setForce(event.currentTarget.checked)} />
        <span>
          At once, with a key that nobody knows yet
          <span class="aside">
            {' '}
            – for keys that somebody else may have. Targets refuse new credentials until they have fetched the keys
            again.
          </span>
        </span>
      </label>
    </ActDialog>
  );
}

function Retire({ signingKey, onClose }: { readonly signingKey: SigningKey; readonly onClose: () => void }) {
  return (
    <ActDialog
      title="Retire a key"
      button="Retire it"
      danger
      act={(reason) =>
        post<Changed>(`/v1/keys/${encodeURIComponent(signingKey.keyId)}/retire`, { reason }, { namespace: null })
      }
      result={({ changed = [] }) =>
        changed.length === 0 ? <p>It had retired before.</p> : <ChangedKeys keys={changed} />
      }
      onClose={onClose}
    >
      <p>
        <span class="mono">{signingKey.keyId}</span> is published no more, and its private part is destroyed.
        Credentials that it signed are refused by every target once its copy of the keys is old.
      </p>
    </ActDialog>
  );
}

function ChangedKeys({ keys }: { readonly keys: readonly SigningKey[] }) {
  return (
    <ul class="bullets">
      {keys.map((key) => (
        <li key={key.keyId}>
          <span class="mono">{key.keyId}</span> is <State code={stateOf(key)} />
        </li>
      ))}
    </ul>
  );
}

const COLUMNS: readonly Column<SigningKey>[] = [
  {
    name: 'Key',
    cell: ({ keyId, algorithm }) => (
      <>
        <span class="mono">{keyId}</span>
        <div class="aside">{algorithm}</div>
      </>
    ),
  },
  { name: 'State', fit: 'tight', cell: (key) => <State code={stateOf(key)} /> },
  { name: 'Made', fit: 'tight', cell: ({ createdAt }) => <Exactly at={createdAt} /> },
  { name: 'Signed from', fit: 'tight', cell: ({ activatedAt }) => <Exactly at={activatedAt} /> },
  { name: 'Signed until', fit: 'tight', cell: ({ replacedAt }) => <Exactly at={replacedAt} /> },
];

const retirement = (retire: (key: SigningKey) => void): Column<SigningKey> => ({
  name: 'Retire',
  unnamed: true,
  fit: 'tight',
  cell: (key) =>
    stateOf(key) === 'PREVIOUS' && (
      <button type="button" class="small" onClick={() => retire(key)}>
        Retire…
      </button>
    ),
});
