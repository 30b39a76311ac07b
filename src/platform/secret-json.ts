/**
 * The JSON of a file that holds secrets, or may by mistake. What is thrown says where it is broken as far as that can be
 * told, and nothing of what stands there, which the parser's own message would quote.
 *
 * @param fail makes the error of what is wrong, such as `is not JSON: line 3`
 */
export function parseSecretJson(text: string, fail: (what: string) => Error): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw fail(`is not JSON${placeOf((error as Error).message, text)}`);
  }
}

function placeOf(message: string, text: string): string {
  if (message.startsWith('Unexpected end')) return ': it ends too early';
  const position = /\bposition (\d+)/.exec(message)?.[1];
  return position === undefined ? '' : `: line ${text.slice(0, Number(position)).split('\n').length}`;
}
