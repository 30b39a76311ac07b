import { describe, expect, it } from 'vitest';
import {
  applied,
  draftOf,
  isChanged,
  type OtherEdit,
  ontoOther,
  seen,
  takeOther,
  withText,
} from '../../src/console/pure/map-draft.js';
import { offerAt, wordsOf } from '../../src/console/pure/map-words.js';
import { protectionOf } from '../../src/console/pure/protection.js';
import { readWriteSet } from '../../src/console/pure/write-set-text.js';
import { mapJsonSchema } from '../../src/services/conflict-map-json-schema.js';

const put = (version: string, document: string): OtherEdit => ({
  version,
  document,
  author: 'b',
  reason: '',
  createdAt: '',
});

describe('an edit of the map', () => {
  it('follows what others put, while it has not begun', () => {
    const draft = seen(null, put('1', 'one'));
    expect(isChanged(draft)).toBe(false);
    expect(seen(draft, put('2', 'two'))).toEqual(draftOf('2', 'two'));
  });

  it('keeps its text when somebody else is faster, and shows what they put', () => {
    const draft = seen(withText(draftOf('1', 'one'), 'mine'), put('2', 'two'));
    expect(draft).toMatchObject({ version: '1', base: 'one', text: 'mine', other: { version: '2', document: 'two' } });
    expect(seen(draft, put('3', 'three')).other).toMatchObject({ version: '3' });
  });

  it('goes on against theirs, or gives way to theirs', () => {
    const draft = seen(withText(draftOf('1', 'one'), 'mine'), put('2', 'two'));
    expect(ontoOther(draft)).toEqual({ version: '2', base: 'two', text: 'mine', other: null });
    expect(takeOther(draft)).toEqual(draftOf('2', 'two'));
  });

  it('is over when it was applied, here or by somebody with the same text', () => {
    const draft = withText(draftOf('1', 'one'), 'mine');
    expect(isChanged(applied(draft, '2', 'mine'))).toBe(false);
    expect(seen(draft, put('2', 'mine'))).toEqual(draftOf('2', 'mine'));
  });

  it('goes on where one typed on while it was being applied', () => {
    const typed = withText(draftOf('1', 'one'), 'mine and more');
    expect(isChanged(applied(typed, '2', 'mine'))).toBe(true);
  });
});

describe('a write set, typed', () => {
  it('is entries, one to a line', () => {
    expect(readWriteSet('write release/prod promote,annotate\n\n stable_read dns/** \nimage/eu')).toEqual({
      value: {
        entries: [
          { resource: 'release/prod', access: 'ACCESS_WRITE', scope: 'SCOPE_EXACT', actions: ['promote', 'annotate'] },
          { resource: 'dns', access: 'ACCESS_STABLE_READ', scope: 'SCOPE_SUBTREE', actions: [] },
          { resource: 'image/eu', access: 'ACCESS_WRITE', scope: 'SCOPE_EXACT', actions: [] },
        ],
      },
    });
  });

  it('is a task with its parameters', () => {
    expect(readWriteSet('task rotate-token tenant=acme at=a=b')).toEqual({
      value: { task: { name: 'rotate-token', parameters: { tenant: 'acme', at: 'a=b' } } },
    });
  });

  it('says what is missing', () => {
    expect(readWriteSet('')).toHaveProperty('error');
    expect(readWriteSet('write')).toEqual({ error: 'Line 1 names no resource.' });
    expect(readWriteSet('task a b')).toEqual({ error: '"b" is no parameter: write name=value.' });
    expect(readWriteSet('task a\nwrite b')).toHaveProperty('error');
  });
});

describe('what the editor offers', () => {
  const words = wordsOf(mapJsonSchema());

  it('is every key of the schema, and the values that a key can have', () => {
    expect([...words.keys()]).toEqual(expect.arrayContaining(['kinds', 'pattern', 'implies', 'because', 'assertions']));
    expect(words.get('authority')).toEqual(['forbid', 'propose', 'write']);
    expect(words.get('tracked')).toEqual(['false', 'true']);
    expect(words.get('pattern')).toEqual([]);
  });

  it('fits what stands before', () => {
    expect(offerAt('    mode: en', words)).toEqual({ from: 10, options: ['enforce', 'observe'], areKeys: false });
    expect(offerAt('  - { pattern: "a", authority: ', words)?.options).toContain('forbid');
    expect(offerAt('  - { pattern: "a", auth', words)).toMatchObject({ from: 20, areKeys: true });
    expect(offerAt('  - pattern: rel', words)).toBeNull();
    expect(offerAt('', words)).toBeNull();
    expect(offerAt('kinds: # mode', words)).toBeNull();
  });
});

describe('how well a resource is protected', () => {
  it('is guarded only where a rehearsal has shown it', () => {
    const known = { kind: 'release/{env}', validation: 'introspect' };
    expect(protectionOf({ ...known, rehearsal: { counts: true, whyNot: '' } }).level).toBe('guarded');
    expect(protectionOf({ ...known, rehearsal: { counts: false, whyNot: 'it is too old' } })).toMatchObject({
      level: 'checked',
      why: expect.stringContaining('too old'),
    });
    expect(protectionOf({ ...known, rehearsal: null }).level).toBe('checked');
    expect(protectionOf({ ...known, kind: '', rehearsal: null }).level).toBe('advisory');
  });
});
