import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';

/** A message of the contract, as far as its bytes can be checked without being decoded. */
export interface MessageShape {
  /** Such as `writ.v1.CheckFenceRequest`. */
  readonly name: string;
  /** By number; numbers of requests are small. */
  readonly fields: readonly (FieldShape | undefined)[];
}

/** One field of it. */
export interface FieldShape {
  /** As in the proto, by which violations name it. */
  readonly name: string;
  readonly wireType: WireType;
  readonly isText: boolean;
  readonly isRepeated: boolean;
  readonly isMapKey: boolean;
  /** The bit of what may be given once, in a set of 32; members of a oneof share theirs. 0: any number of times. */
  readonly onceBit: number;
  /** Of a field that is a message. */
  readonly message: MessageShape | null;
}

/** Shapes from descriptors; one per message, also where messages contain themselves. */
export class MessageShapes {
  readonly #made = new Map<string, MessageShape>();

  of(message: DescMessage): MessageShape {
    const known = this.#made.get(message.typeName);
    if (known !== undefined) return known;
    const fields: FieldShape[] = [];
    const shape = { name: message.typeName, fields };
    this.#made.set(message.typeName, shape);
    const bits = new OnceBits();
    for (const field of message.fields) fields[field.number] = this.#field(field, bits);
    return shape;
  }

  #field(field: DescField, bits: OnceBits): FieldShape {
    const common = { name: field.name, isMapKey: false };
    switch (field.fieldKind) {
      case 'map':
        return { ...common, ...REPEATED, ...EMBEDDED, message: this.#mapEntry(field) };
      case 'list':
        return { ...common, ...this.#value(field.scalar, field.message), ...REPEATED };
      default:
        return {
          ...common,
          ...this.#value(field.scalar, field.message),
          isRepeated: false,
          onceBit: bits.of(field.oneof?.name ?? field.name),
        };
    }
  }

  /** On the wire a map is a list of pairs. */
  #mapEntry(field: DescField & { readonly fieldKind: 'map' }): MessageShape {
    const single = { isRepeated: false, isMapKey: false };
    const key = { ...single, ...this.#value(field.mapKey, undefined), name: 'key', isMapKey: true, onceBit: 1 };
    const value = { ...single, ...this.#value(field.scalar, field.message), name: 'value', onceBit: 2 };
    return { name: field.name, fields: [undefined, key, value] };
  }

  #value(scalar: ScalarType | undefined, message: DescMessage | undefined) {
    if (message !== undefined) return { ...EMBEDDED, message: this.of(message) };
    // Enums have no scalar type; they travel as int32.
    return {
      wireType: wireTypeOf(scalar ?? ScalarType.INT32),
      isText: scalar === ScalarType.STRING,
      message: null,
    };
  }
}

const REPEATED = { isRepeated: true, onceBit: 0 };
const EMBEDDED = { wireType: WireType.LengthDelimited, isText: false };

class OnceBits {
  readonly #bits = new Map<string, number>();

  of(name: string): number {
    const bit = this.#bits.get(name) ?? 1 << this.#bits.size;
    this.#bits.set(name, bit);
    if (this.#bits.size > 32) throw new Error('a message of requests has more than 32 fields; widen the set');
    return bit;
  }
}

function wireTypeOf(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
