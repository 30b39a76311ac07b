import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { DescMessage, FileRegistry, JsonValue } from '@bufbuild/protobuf';
import { toDuration, toTimestamp } from '../clients/common/time.js';
import { Duration } from '../gen/google/protobuf/duration.js';
import { Timestamp } from '../gen/google/protobuf/timestamp.js';

/** The generated code of a message. */
interface MessageType<T> {
  readonly $type: string;
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

/** Loaded by the first document: everything that prints text starts sooner without it. */
const require = createRequire(import.meta.url);
const library = () => require('@bufbuild/protobuf') as typeof import('@bufbuild/protobuf');
const wellKnown = () => require('@bufbuild/protobuf/wkt') as typeof import('@bufbuild/protobuf/wkt');

let registry: FileRegistry | undefined;

/**
 * A message of the contract as proto3 JSON, the way every other tool writes it. The generated `toJSON` is not used: it
 * cuts timestamps to milliseconds and writes durations as objects.
 */
export function protoJson<T>(type: MessageType<T>, message: T): JsonValue {
  const { fromBinary, toJson } = library();
  const schema = schemaOf(type);
  return toJson(schema, fromBinary(schema, type.encode(message).finish()));
}

/** Reads what `protoJson` wrote; throws on what is no such message. */
export function fromProtoJson<T>(type: MessageType<T>, json: JsonValue): T {
  const { fromJson, toBinary } = library();
  const schema = schemaOf(type);
  return type.decode(toBinary(schema, fromJson(schema, json)));
}

function schemaOf({ $type }: { readonly $type: string }): DescMessage {
  const { createFileRegistry, fromBinary } = library();
  registry ??= createFileRegistry(
    fromBinary(wellKnown().FileDescriptorSetSchema, readFileSync(new URL('../gen/descriptor.binpb', import.meta.url))),
  );
  const schema = registry.getMessage($type);
  if (schema === undefined) throw new TypeError(`the contract has no message ${$type}`);
  return schema;
}

/** A length of time, such as `1.500s`. */
export const durationJson = (ms: number): JsonValue => protoJson(Duration, toDuration(ms));

/** A moment of the database clock in RFC 3339, such as `2026-12-01T10:00:00.000123Z`. */
export const momentJson = (micros: number): JsonValue => protoJson(Timestamp, toTimestamp(micros));
