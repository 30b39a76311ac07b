import { isUtf8 } from 'node:buffer';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { Fault, invalidArgument } from '../../domain/fault.js';
import { type MessageBounds, tooManyFields } from '../message-size.js';
import type { FieldShape, MessageShape } from './message-shape.js';

/**
 * Checks the bytes of a request before the generated code decodes them, in one pass that makes no objects of what it
 * reads. The generated code is lenient, and generous: text that is no UTF-8 becomes U+FFFD, a zero tag ends a message
 * early, a message may reach beyond its length, of a field given twice the last wins, and every two bytes buy an
 * object. Here all of that is refused, with the field where it is known, so that what the services see is what was sent.
 *
 * Fields that the contract does not have are skipped, as protobuf wants it: a newer client may send them.
 */
export function checkMessage(bytes: Uint8Array, shape: MessageShape, bounds: MessageBounds): void {
  new Check(bytes, shape, bounds).run();
}

/** Of messages in messages; the contract needs 4. */
const MAX_DEPTH = 32;
/** Up to here the native check costs more than the loop. */
const SHORT_TEXT_BYTES = 64;
/** The longest varint of 32 bits: a tag or a length. */
const MAX_VARINT32_BYTES = 5;

/** Where a message is: the field that holds it, and the message which that is in. */
interface Place {
  readonly holder: Place | null;
  readonly field: FieldShape;
  /** In a list. */
  readonly index: number;
}

class Check {
  readonly #bytes: Uint8Array;
  readonly #reader: BinaryReader;
  readonly #shape: MessageShape;
  readonly #bounds: MessageBounds;
  #fieldsLeft: number;

  constructor(bytes: Uint8Array, shape: MessageShape, bounds: MessageBounds) {
    this.#bytes = bytes;
    this.#reader = new BinaryReader(bytes);
    this.#shape = shape;
    this.#bounds = bounds;
    this.#fieldsLeft = bounds.maxFields;
  }

  run(): void {
    try {
      this.#message(this.#shape, this.#bytes.length, null, 1);
    } catch (error) {
      // What the reader throws is about the bytes: they end too early, or a number does not end.
      throw error instanceof Fault ? error : malformed(this.#shape.name, (error as Error).message);
    }
  }

  #message(shape: MessageShape, end: number, holder: Place | null, depth: number): void {
    if (depth > MAX_DEPTH) throw this.#malformed(`more than ${MAX_DEPTH} messages are inside one another`);
    const reader = this.#reader;
    let given = 0;
    let counts: number[] | undefined;
    while (reader.pos < end) {
      const tag = this.#varint32();
      const number = tag >>> 3;
      const wireType = tag & 7;
      if (number === 0) throw this.#malformed('field number 0');
      const field = shape.fields[number];
      if (field === undefined) {
        this.#count(holder, 'an unknown field');
        this.#skip(wireType, end);
        continue;
      }
      let index = 0;
      if (field.isRepeated) {
        counts ??= [];
        index = counts[number] ?? 0;
        counts[number] = index + 1;
      } else if ((given & field.onceBit) !== 0) throw violation({ holder, field, index }, TWICE);
      given |= field.onceBit;
      this.#count(holder, field.name);
      this.#field(field, wireType, end, { holder, field, index }, depth);
    }
  }

  #field(field: FieldShape, wireType: WireType, end: number, place: Place, depth: number): void {
    if (wireType !== field.wireType) {
      // Numbers of a list come one by one or packed.
      if (!field.isRepeated || wireType !== WireType.LengthDelimited)
        throw this.#malformed(`${pathOf(place)} has wire type ${wireType}, not ${field.wireType}`);
      this.#packed(field, this.#length(end), place);
    } else if (field.message !== null) this.#message(field.message, this.#length(end), place, depth + 1);
    else if (field.isText) this.#text(field, this.#length(end), place);
    else this.#skip(wireType, end);
  }

  #text(field: FieldShape, end: number, place: Place): void {
    const start = this.#reader.pos;
    if (!isText(this.#bytes, start, end)) throw violation(place, 'is not valid UTF-8');
    // Of all keys this one alone would be lost: in an object it names no property but the prototype.
    if (field.isMapKey && end - start === PROTO.length && PROTO.equals(this.#bytes.subarray(start, end)))
      throw violation(place, `must not be ${PROTO}`);
    this.#reader.pos = end;
  }

  #packed(field: FieldShape, end: number, place: Place): void {
    while (this.#reader.pos < end) {
      this.#count(place.holder, field.name);
      this.#skip(field.wireType, end);
    }
  }

  #count(holder: Place | null, name: string): void {
    if (this.#fieldsLeft === 0) {
      const field = holder === null ? name : `${pathOf(holder)}.${name}`;
      throw tooManyFields(field, this.#bounds);
    }
    this.#fieldsLeft -= 1;
  }

  #skip(wireType: WireType, end: number): void {
    const reader = this.#reader;
    switch (wireType) {
      case WireType.Varint:
        reader.uint32();
        break;
      case WireType.Bit64:
        reader.pos += 8;
        break;
      case WireType.LengthDelimited:
        reader.pos = this.#length(end);
        break;
      case WireType.Bit32:
        reader.pos += 4;
        break;
      default:
        // Groups are of proto2; nothing in proto3 makes them.
        throw this.#malformed(`wire type ${wireType}`);
    }
    if (reader.pos > end) throw this.#malformed('a field goes on beyond the end of its message');
  }

  /** Reads a length; returns where what has it ends. */
  #length(end: number): number {
    const length = this.#varint32();
    const until = this.#reader.pos + length;
    if (until > end) throw this.#malformed(`a length of ${length} goes beyond the end`);
    return until;
  }

  #varint32(): number {
    const { pos } = this.#reader;
    const value = this.#reader.uint32();
    const length = this.#reader.pos - pos;
    if (length > MAX_VARINT32_BYTES || (length === MAX_VARINT32_BYTES && (this.#bytes[pos + 4] ?? 0) > 0x0f))
      throw this.#malformed('a tag or length of more than 32 bits');
    return value;
  }

  #malformed(what: string): Fault {
    return malformed(this.#shape.name, `${what}, at byte ${this.#reader.pos}`);
  }
}

const TWICE = 'is given twice, or together with another of its oneof';
const PROTO = Buffer.from('__proto__');

function isText(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > SHORT_TEXT_BYTES) return isUtf8(bytes.subarray(start, end));
  for (let at = start; at < end; at += 1) {
    if ((bytes[at] as number) > 0x7f) return isUtf8(bytes.subarray(at, end));
  }
  return true;
}

/** Bytes that are no message of the kind that the method takes. */
export function malformed(message: string, what: string): Fault {
  return new Fault('invalid_argument', 'MALFORMED_MESSAGE', `the bytes are no ${message}: ${what}`);
}

function violation(place: Place, description: string): Fault {
  return invalidArgument([{ field: pathOf(place), description }]);
}

function pathOf({ holder, field, index }: Place): string {
  const name = field.isRepeated ? `${field.name}[${index}]` : field.name;
  return holder === null ? name : `${pathOf(holder)}.${name}`;
}
