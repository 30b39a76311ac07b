import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { Random } from '../harness/random.js';

/** Bytes of messages, put together by hand: also such as no encoder makes. */

export function text(field: number, value: string | Uint8Array): Buffer {
  return Buffer.from(new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(Buffer.from(value)).finish());
}

export function embedded(field: number, ...parts: readonly Uint8Array[]): Buffer {
  return text(field, Buffer.concat(parts));
}

export function number(field: number, value: number | bigint): Buffer {
  const writer = new BinaryWriter().tag(field, WireType.Varint);
  return Buffer.from((value < 0 ? writer.int64(BigInt(value)) : writer.uint64(BigInt(value))).finish());
}

export const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');

/** Numbers from 0 to 1, the same for the same seed. */
export function seeded(seed: number): () => number {
  const random = new Random(seed);
  return () => random.next();
}

const WORDS = ['', 'a', 'default', 'release/prod-eu', 'ü', '\u0000', 'x'.repeat(300), '0'.repeat(32), '__proto__', '*'];
const NUMBERS = [0n, 1n, 2n, 9n, 1000n, 2n ** 31n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n, -1n];

/** A message of this kind with values in any of its fields, each well-formed on the wire; `words` may come in text too. */
export function randomMessage(
  message: DescMessage,
  random: () => number,
  words: readonly string[] = [],
  depth = 0,
): Buffer {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const value = (field: number, scalar: ScalarType | undefined, inner: DescMessage | undefined): Buffer => {
    if (inner !== undefined)
      return embedded(field, depth > 6 ? bytes('') : randomMessage(inner, random, words, depth + 1));
    if (scalar === ScalarType.STRING || scalar === ScalarType.BYTES)
      return text(field, random() < 0.5 && words.length > 0 ? pick(words) : pick(WORDS));
    return number(field, pick(NUMBERS));
  };
  const entry = (field: DescField & { readonly fieldKind: 'map' }): Buffer =>
    embedded(field.number, value(1, field.mapKey, undefined), value(2, field.scalar, field.message));
  const taken = new Set<string>();
  const parts = message.fields.map((field) => {
    if (field.fieldKind === 'map') return random() < 0.5 ? entry(field) : bytes('');
    if (field.fieldKind === 'list') {
      const one = (): Buffer => value(field.number, field.scalar, field.message);
      return Buffer.concat(Array.from({ length: Math.floor(random() * 4) }, one));
    }
    if (random() < 0.3 || taken.has(field.oneof?.name ?? '')) return bytes('');
    if (field.oneof !== undefined) taken.add(field.oneof.name);
    return value(field.number, field.scalar, field.message);
  });
  return Buffer.concat(parts);
}

/** The bytes with some of them changed, cut off, doubled or put in. */
export function damaged(original: Buffer, random: () => number): Buffer {
  let result = Buffer.from(original);
  for (let round = Math.ceil(random() * 3); round > 0; round -= 1) {
    const at = Math.floor(random() * (result.length + 1));
    const to = Math.min(result.length, at + Math.floor(random() * 8));
    const noise = Buffer.from(Array.from({ length: Math.ceil(random() * 4) }, () => Math.floor(random() * 256)));
    const [head, middle, tail] = [result.subarray(0, at), result.subarray(at, to), result.subarray(to)];
    const change = Math.floor(random() * 5);
    if (change === 0) result = Buffer.from(head);
    else if (change === 1) result = Buffer.concat([head, noise, middle, tail]);
    else if (change === 2) result = Buffer.concat([head, middle, middle, tail]);
    else if (change === 3) result = Buffer.concat([head, tail]);
    else result = Buffer.concat([head, noise, tail]);
  }
  return result;
}
