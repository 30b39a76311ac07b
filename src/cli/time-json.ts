import type { JsonValue } from '@bufbuild/protobuf';
import { toDuration, toTimestamp } from '../clients/common/time.js';
import { protoJson } from '../contract/proto-json.js';
import { Duration } from '../gen/google/protobuf/duration.js';
import { Timestamp } from '../gen/google/protobuf/timestamp.js';

/** A length of time, such as `1.500s`. */
export const durationJson = (ms: number): JsonValue => protoJson(Duration, toDuration(ms));

/** A moment of the database clock in RFC 3339, such as `2026-12-01T10:00:00.000123Z`. */
export const momentJson = (micros: number): JsonValue => protoJson(Timestamp, toTimestamp(micros));
