import { get } from '../api/client.js';
import { useData } from '../api/data.js';
import type { Answer } from '../api/shapes.js';
import { addressOf } from '../pure/paths.js';
import { go, useNamespace } from '../router.js';

type Namespaces = Answer<'ListNamespacesResponse'>;

/** Which namespace is looked at. Screens of one thing are left for the overview: it is not in the other one. */
export function NamespaceSwitch() {
  const namespace = useNamespace();
  const { value } = useData(
    'namespaces',
    (signal) => get<Namespaces>('/v1/namespaces', { namespace: null, signal, query: { page_size: '1000' } }),
    { live: false, ofNamespace: false },
  );
  const names = (value?.namespaces ?? []).map(({ name }) => name);
  const known = names.includes(namespace) ? names : [namespace, ...names];
  const change = (next: string) => {
    const { pathname } = window.location;
    const stays = ['/live', '/map', '/runs', '/log', '/keys', '/reasons'].includes(pathname);
    go(addressOf(stays ? pathname : '/', next));
  };
  return (
    <select
      class="namespace"
      aria-label="Namespace"
      value={namespace}
      onChange={(event) => change(event.currentTarget.value)}
    >
      {known.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
