import { type DescField, type DescMessage, type JsonObject, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { pathOf } from './strict-json.js';
import { WrongRequest } from './wrong-request.js';

/**
 * proto3 JSON lets a writer spell some values in several ways, and a reader has to take them all: a member by its name in
 * the contract (`run_id`), `null` for one that is absent, an enum or 64 bits as a number, 32 bits as a string, base64 as
 * URLs have it. Here they become the spelling that answers have, which is the one that is checked. What cannot have come
 * through unchanged, a number beyond 2^53, stays as it is, and is refused.
 */
export function inUsualForm(message: DescMessage, json: JsonObject, at: readonly PropertyKey[] = []): JsonObject {
  const usual: JsonObject = {};
  for (const [name, value] of Object.entries(json)) {
    const field = message.fields.find((one) => one.jsonName === name || one.name === name);
    const key = field?.jsonName ?? name;
    if (Object.hasOwn(usual, key))
      throw new WrongRequest([{ field: pathOf([...at, name]), description: `is given twice, also as ${key}` }]);
    if (field === undefined) usual[key] = value;
    else if (value !== null) usual[key] = fieldForm(field, value, [...at, key]);
  }
  return usual;
}

function fieldForm(field: DescField, value: JsonValue, at: readonly PropertyKey[]): JsonValue {
  if (field.fieldKind === 'list' && Array.isArray(value))
    return value.map((item, index) => singleOf(field, item, [...at, index]));
  if (field.fieldKind === 'list' || !isObject(value)) return singleOf(field, value, at);
  if (field.fieldKind !== 'map') return singleOf(field, value, at);
  const entries = Object.entries(value).map(([key, one]) => [key, singleOf(field, one, [...at, key])]);
  return Object.fromEntries(entries) as JsonObject;
}

function singleOf(field: DescField, value: JsonValue, at: readonly PropertyKey[]): JsonValue {
  if (field.enum !== undefined) return field.enum.values.find(({ number }) => number === value)?.name ?? value;
  if (field.message !== undefined)
    return isObject(value) && !isWellKnown(field.message) ? inUsualForm(field.message, value, at) : value;
  const form = field.scalar === undefined ? undefined : FORMS[field.scalar];
  return form?.(value) ?? value;
}

const isObject = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** They have a JSON of their own. */
const isWellKnown = ({ typeName }: DescMessage): boolean => typeName.startsWith('google.protobuf.');

const asText = (value: JsonValue): JsonValue => (Number.isSafeInteger(value) ? String(value) : value);
const asNumber = (value: JsonValue): JsonValue =>
  typeof value === 'string' && /^-?\d{1,10}$/.test(value) ? Number(value) : value;
const asBase64 = (value: JsonValue): JsonValue =>
  typeof value === 'string' && /^[\w-]+={0,2}$/.test(value)
    ? Buffer.from(value, 'base64url').toString('base64')
    : value;

const FORMS: Partial<Record<ScalarType, (value: JsonValue) => JsonValue>> = {
  [ScalarType.UINT64]: asText,
  [ScalarType.INT64]: asText,
  [ScalarType.UINT32]: asNumber,
  [ScalarType.INT32]: asNumber,
  [ScalarType.BYTES]: asBase64,
};
