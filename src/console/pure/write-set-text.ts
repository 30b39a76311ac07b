/**
 * A write set as one types it: `task NAME parameter=value …`, or entries, one to a line: `write release/prod promote`,
 * `read config/eu`, with `/**` after a resource for everything below it.
 */
export interface AskedWriteSet {
  readonly entries?: readonly {
    readonly resource: string;
    readonly access: string;
    readonly scope: string;
    readonly actions: readonly string[];
  }[];
  readonly task?: { readonly name: string; readonly parameters: Readonly<Record<string, string>> };
}

export type ReadWriteSet = { readonly value: AskedWriteSet } | { readonly error: string };

const ACCESS: Readonly<Record<string, string>> = {
  read: 'ACCESS_READ',
  stable_read: 'ACCESS_STABLE_READ',
  write: 'ACCESS_WRITE',
};

export function readWriteSet(text: string): ReadWriteSet {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const [first] = lines;
  if (first === undefined) return { error: 'Say what is asked for.' };
  if (first.startsWith('task ')) return lines.length > 1 ? { error: 'A task stands alone.' } : readTask(first.slice(5));
  const entries = [];
  for (const [index, line] of lines.entries()) {
    const [word = '', ...rest] = line.split(/\s+/);
    const access = ACCESS[word];
    const [resource, ...actions] = access === undefined ? [word, ...rest] : rest;
    if (resource === undefined) return { error: `Line ${index + 1} names no resource.` };
    const below = resource.endsWith('/**');
    entries.push({
      resource: below ? resource.slice(0, -3) : resource,
      access: access ?? 'ACCESS_WRITE',
      scope: below ? 'SCOPE_SUBTREE' : 'SCOPE_EXACT',
      actions: actions.flatMap((part) => part.split(',')).filter((action) => action !== ''),
    });
  }
  return { value: { entries } };
}

function readTask(text: string): ReadWriteSet {
  const [name = '', ...given] = text.trim().split(/\s+/);
  const parameters: Record<string, string> = {};
  for (const part of given) {
    const at = part.indexOf('=');
    if (at < 1) return { error: `"${part}" is no parameter: write name=value.` };
    parameters[part.slice(0, at)] = part.slice(at + 1);
  }
  return { value: { task: { name, parameters } } };
}
