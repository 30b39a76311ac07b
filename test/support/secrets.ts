import { createPrivateKey } from 'node:crypto';

/** A run of a secret as long as this is a leak, wherever in it the run begins: cut or wrapped text is found too. */
const RUN = 12;

/** Secrets that take part in a test, to look for in all that was written meanwhile. */
export class Secrets {
  readonly #runs = new Map<string, string>();
  readonly #whole = new Map<string, string>();

  /** A text that nobody could guess any part of; it is found in hexadecimal, base64 and percent-encoding too. */
  add(name: string, text: string): this {
    if (text.length < RUN) throw new RangeError(`${name} is too short to be told from other text`);
    this.#remember(name, [text, encodeURIComponent(text)]);
    return this.addBytes(name, Buffer.from(text));
  }

  addBytes(name: string, bytes: Buffer): this {
    // In base64 the same bytes look different by what stands before them; what depends on neighbours is cut off.
    const encoded = [0, 1, 2].map((before) =>
      Buffer.concat([Buffer.alloc(before), bytes])
        .toString('base64')
        .replace(/=+$/, '')
        .slice(before === 0 ? 0 : before + 1, -1),
    );
    const urlSafe = encoded.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
    const hex = bytes.toString('hex');
    this.#remember(name, [...encoded, ...urlSafe, hex, hex.toUpperCase()]);
    return this;
  }

  /** Of a token in three parts the signature is the secret: without it nobody is believed. */
  addJwt(name: string, token: string): this {
    return this.add(name, token.split('.')[2] ?? '');
  }

  /** The secret number of a private key; the rest of its file is public. */
  addPrivateKey(name: string, pem: string): this {
    const { d = '' } = createPrivateKey(pem).export({ format: 'jwk' });
    return this.addBytes(name, Buffer.from(d, 'base64url'));
  }

  /** A text whose parts mean nothing, such as a number that begins as all of its kind do: found as a whole only. */
  addWhole(name: string, text: string): this {
    this.#whole.set(text, name);
    return this;
  }

  /** Names of the secrets that the text holds some of, each with what stands there. */
  findIn(text: string): string[] {
    const found = new Map<string, string>();
    const note = (name: string, at: number) => {
      if (!found.has(name)) found.set(name, text.slice(Math.max(0, at - 60), at + RUN).replaceAll(/\s+/g, ' '));
    };
    for (let at = 0; at + RUN <= text.length; at += 1) {
      const name = this.#runs.get(text.slice(at, at + RUN));
      if (name !== undefined) note(name, at);
    }
    for (const [secret, name] of this.#whole) {
      const at = text.indexOf(secret);
      if (at >= 0) note(name, at);
    }
    return [...found].map(([name, where]) => `${name}: …${where}…`);
  }

  #remember(name: string, forms: readonly string[]): void {
    for (const form of forms)
      for (let at = 0; at + RUN <= form.length; at += 1) this.#runs.set(form.slice(at, at + RUN), name);
  }
}

/** What was written during a test, by where. */
export class Written {
  readonly #texts = new Map<string, string[]>();

  add(where: string, ...what: readonly unknown[]): void {
    const texts = this.#texts.get(where) ?? [];
    texts.push(...what.map((one) => (typeof one === 'string' ? one : textOf(one))));
    this.#texts.set(where, texts);
  }

  of(where: string): string {
    return (this.#texts.get(where) ?? []).join('\n');
  }

  /** Every place where some of these secrets stands, in words. */
  leaks(secrets: Secrets, except: readonly string[] = []): string[] {
    return [...this.#texts.keys()]
      .filter((where) => !except.includes(where))
      .flatMap((where) => secrets.findIn(this.of(where)).map((what) => `${where}: ${what}`));
  }
}

/** Whatever it is, with bytes as they are: what is in them must be found. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => {
    if (typeof one === 'bigint') return String(one);
    if (one instanceof Uint8Array) return Buffer.from(one).toString('latin1');
    // JSON.stringify has already asked a Buffer what it is.
    const { type, data } = (one ?? {}) as { type?: unknown; data?: unknown };
    if (type === 'Buffer' && Array.isArray(data)) return Buffer.from(data as number[]).toString('latin1');
    return one;
  });
}
