import { describe, expect, it } from 'vitest';
import { Secrets } from '../support/secrets.js';

describe('the search itself', () => {
  const secret = 'k3J9-xQ2_vLm8TzR4wYb';
  const found = (text: string) => new Secrets().add('it', secret).findIn(text).length;

  it.each([
    ['as it is', `token=${secret}`],
    ['cut off', `…${secret.slice(4, 17)}…`],
    ['in base64, whatever stands before', Buffer.from(`Basic a:${secret}`).toString('base64')],
    ['in hexadecimal', Buffer.from(`x${secret}`).toString('hex')],
    ['in a URL', `?t=${encodeURIComponent(secret)}`],
    ['in JSON', JSON.stringify({ body: JSON.stringify({ secret }) })],
  ])('finds a secret %s', (_, text) => {
    expect(found(text)).toBe(1);
  });

  it('finds nothing where there is nothing', () => {
    expect(found('k3J9-xQ2_vL is the beginning, and 8TzR4wYb the end')).toBe(0);
  });
});
