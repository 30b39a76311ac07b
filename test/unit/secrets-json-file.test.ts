import { expect, it } from 'vitest';
import { parseJsonFile } from '../../src/auth/json-file.js';
import { PrincipalsFileError } from '../../src/auth/principal-entry.js';

// A file of principals or tokens that is broken in the middle of a secret; the parser's own words would quote it (A3).

const TOKEN = 'writ_Ab3dEf6hIj9lMn2pQr5tUv8xYz';

function messageOf(text: string): string {
  try {
    parseJsonFile(text, 'tokens.json');
  } catch (error) {
    expect(error).toBeInstanceOf(PrincipalsFileError);
    expect((error as Error).cause).toBeUndefined();
    return (error as Error).message;
  }
  throw new Error('it was taken');
}

it.each([
  ['a token and nothing else', TOKEN, 'tokens.json: is not JSON'],
  ['a token without its quotes', `{"admin": ${TOKEN}}`, 'tokens.json: is not JSON'],
  ['a quote in the middle of a token', `{\n"admin": "writ_Ab3d"Ef6hIj9lMn2p"}`, 'tokens.json: is not JSON: line 2'],
  ['a line break in the middle of one', `{"a": 1,\n\n"b": "writ_Ab3d\nEf6hIj9l"}`, 'tokens.json: is not JSON: line 3'],
  ['a file that was cut off', '{"admin":', 'tokens.json: is not JSON: it ends too early'],
])('%s: says where, and nothing of what stands there', (_, text, message) => {
  expect(messageOf(text)).toBe(message);
});

it('gives what is JSON', () => {
  expect(parseJsonFile('{"a": [1]}', 'x')).toEqual({ a: [1] });
});
