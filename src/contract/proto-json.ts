import type { JsonValue, JsonWriteOptions } from '@bufbuild/protobuf';
import { library, messageNamed } from './descriptors.js';

/** The generated code of a message. */
export interface MessageType<T> {
  readonly $type: string;
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

/**
 * A message of the contract as proto3 JSON, the way every other tool writes it. The generated `toJSON` is not used: it
 * cuts timestamps to milliseconds and writes durations as objects.
 */
export function protoJson<T>(type: MessageType<T>, message: T, options: Partial<JsonWriteOptions> = {}): JsonValue {
  const { fromBinary, toJson } = library();
  const schema = messageNamed(type.$type);
  return toJson(schema, fromBinary(schema, type.encode(message).finish()), options);
}

/** Reads what `protoJson` wrote; throws on what is no such message. */
export function fromProtoJson<T>(type: MessageType<T>, json: JsonValue): T {
  const { fromJson, toBinary } = library();
  const schema = messageNamed(type.$type);
  return type.decode(toBinary(schema, fromJson(schema, json)));
}
