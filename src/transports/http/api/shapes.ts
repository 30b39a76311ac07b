import { type DescEnum, type DescField, type DescMessage, fromJson, ScalarType } from '@bufbuild/protobuf';
import { protoCamelCase } from '@bufbuild/protobuf/reflect';
import { DurationSchema, FeatureSet_FieldPresence, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { z } from '@hono/zod-openapi';
import { commentOn } from '../../../contract/comments.js';
import { contractTypes } from '../../../contract/descriptors.js';

/**
 * The contract's messages as zod schemas of their proto3 JSON: what requests are read by, and what the OpenAPI document
 * is made of. Requests are taken strictly: members that the contract does not have are errors. Answers say no more than
 * what is there, so that a member added later breaks nobody.
 *
 * A message has one name in the document; of one that is both sent and answered the sent form is `…Input`, as there all
 * that has a default may be left out.
 */
export interface ShapesOptions {
  /** By message, names of fields that are given elsewhere in a request: in its path, its query or its headers. */
  readonly elsewhere: ReadonlyMap<string, ReadonlySet<string>>;
  /** Names of the messages that answers consist of. */
  readonly answered: ReadonlySet<string>;
}

interface OwnBody {
  readonly name: string;
  /** Fields that it does not have. */
  readonly elsewhere: ReadonlySet<string>;
  /** One that it has to have. */
  readonly needed: DescField;
}

export class Shapes {
  readonly #options: ShapesOptions;
  readonly #made = new Map<string, z.ZodType>();

  constructor(options: ShapesOptions) {
    this.#options = options;
  }

  /** Every schema that has a name, in the order in which they refer to one another. */
  get named(): ReadonlyMap<string, z.ZodType> {
    return this.#made;
  }

  /** What a request's body may be; `own`: of a route that does not have what is else the body of this message. */
  request(message: DescMessage, own?: OwnBody): z.ZodType {
    const name = own?.name ?? (this.#options.answered.has(message.typeName) ? `${message.name}Input` : message.name);
    const elsewhere = own?.elsewhere ?? this.#options.elsewhere.get(message.typeName);
    return this.#once(name, () => {
      const fields = message.fields.filter(({ name }) => elsewhere?.has(name) !== true);
      const members = fields.map((field) => [field.jsonName, this.member(field, field === own?.needed || undefined)]);
      const oneOfs = message.oneofs.filter(({ fields }) => fields.length > 1);
      const object = z.strictObject(Object.fromEntries(members)).superRefine((value, context) => {
        for (const { fields } of oneOfs) {
          const given = fields.filter(({ jsonName }) => value[jsonName] !== undefined);
          for (const field of given.slice(1))
            context.addIssue({
              code: 'custom',
              path: [field.jsonName],
              message: `cannot be given together with ${given[0]?.jsonName}`,
            });
        }
      });
      return object.openapi(name, { description: said(commentOn(message.typeName)) });
    });
  }

  /** What an answer is. */
  answer(message: DescMessage): z.ZodType {
    return this.#once(message.name, () => {
      const members = message.fields.map((field) => {
        const schema = this.#list(field, (value) => this.answer(value));
        return [field.jsonName, described(isAlwaysThere(field) ? schema : schema.optional(), field)];
      });
      return z
        .object(Object.fromEntries(members))
        .openapi(message.name, { description: said(commentOn(message.typeName)) });
    });
  }

  /** One member of a request. */
  member(field: DescField, isNeeded = isRequired(field)): z.ZodType {
    const schema = this.#list(field, (message) => this.request(message));
    return isNeeded
      ? schema.openapi({ description: said(commentOn(nameOf(field))) })
      : described(schema.optional(), field);
  }

  #list(field: DescField, messageOf: (message: DescMessage) => z.ZodType): z.ZodType {
    switch (field.fieldKind) {
      case 'list':
        return z.array(this.#single(field, messageOf), says('must be a list'));
      case 'map':
        return z.record(text(), this.#single(field, messageOf), says('must be an object'));
      default:
        return this.#single(field, messageOf);
    }
  }

  #single(field: DescField, messageOf: (message: DescMessage) => z.ZodType): z.ZodType {
    if (field.enum !== undefined) return this.#enum(field.enum);
    if (field.message !== undefined) return WELL_KNOWN[field.message.typeName]?.() ?? messageOf(field.message);
    return scalar(field.scalar);
  }

  #enum(type: DescEnum): z.ZodType {
    return this.#once(type.name, () => {
      const names = type.values.map(({ name }) => name);
      const values = type.values.map(({ name }) => `- \`${name}\`: ${said(commentOn(`${type.typeName}.${name}`))}`);
      return z
        .enum(names, says(`must be one of ${names.join(', ')}`))
        .openapi(type.name, { description: [said(commentOn(type.typeName)), '', ...values].join('\n') });
    });
  }

  #once(name: string, make: () => z.ZodType): z.ZodType {
    const known = this.#made.get(name);
    if (known !== undefined) return known;
    const made = make();
    this.#made.set(name, made);
    return made;
  }
}

/** Members that even an empty message is written with. */
function isAlwaysThere(field: DescField): boolean {
  return (
    field.fieldKind === 'list' || field.fieldKind === 'map' || field.presence === FeatureSet_FieldPresence.IMPLICIT
  );
}

/** The comment says so, and not of some cases only. */
function isRequired(field: DescField): boolean {
  return field.oneof === undefined && /(?:^|\. |; )Required[.,;](?! unless)(?! with)/.test(commentOn(nameOf(field)));
}

const nameOf = (field: DescField): string => `${field.parent.typeName}.${field.name}`;

function described(schema: z.ZodType, field: DescField): z.ZodType {
  const others = field.oneof?.fields.filter((other) => other !== field).map(({ jsonName }) => jsonName) ?? [];
  const alone = others.length === 0 ? '' : ` Not together with ${others.join(', ')}.`;
  return schema.openapi({ description: `${said(commentOn(nameOf(field)))}${alone}` });
}

/** A comment, with the names of fields as JSON has them. */
export function said(comment: string): string {
  return comment.replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, (word) =>
    fieldNames().has(word) ? protoCamelCase(word) : word,
  );
}

let names: ReadonlySet<string> | undefined;

function fieldNames(): ReadonlySet<string> {
  names ??= new Set(
    [...contractTypes()].flatMap((type) => (type.kind === 'message' ? type.fields.map(({ name }) => name) : [])),
  );
  return names;
}

const says = (text: string) => ({
  error: ({ input }: { readonly input?: unknown }) => (input === undefined ? 'is required' : text),
});

const MAX_UINT32 = 4_294_967_295;
const MIN_INT32 = -2_147_483_648;
const MAX_INT32 = 2_147_483_647;
const UINT64 = says('must be a decimal number in a string, such as "12", of at most 64 bits');
const INT64 = says('must be a decimal number in a string, such as "-12", of at most 64 bits');

/** JSON can spell half of a surrogate pair, which no message of the contract can carry. */
export function text(): z.ZodString {
  return z.string(says('must be a string')).refine((value) => value.isWellFormed(), HALF_A_PAIR);
}

const HALF_A_PAIR = 'must not contain half of a surrogate pair';

export function truth(): z.ZodBoolean {
  return z.boolean(says('must be true or false'));
}

export function uint32(): z.ZodType {
  const error = says(`must be a whole number from 0 to ${MAX_UINT32}`);
  return z.int(error).min(0, error).max(MAX_UINT32, error);
}

/** A number of 64 bits. */
export function uint64(): z.ZodType {
  return written(/^\d{1,20}$/, UINT64, (text) => BigInt.asUintN(64, BigInt(text)) === BigInt(text));
}

/** A string of one form, not all of which mean something. */
function written(form: RegExp, error: ReturnType<typeof says>, means: (text: string) => boolean): z.ZodString {
  return z
    .string(error)
    .regex(form, { ...error, abort: true })
    .refine(means, error);
}

/** Whether the codec takes it: what it does not, it would refuse without the name of the field. */
function decodes(type: DescMessage): (text: string) => boolean {
  return (text) => {
    try {
      fromJson(type, text);
      return true;
    } catch {
      return false;
    }
  };
}

/** The codec takes the 30th of February for the 2nd of March, and 24:00 for midnight, which RFC 3339 has not. */
function isOnTheCalendar(text: string): boolean {
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number);
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return (
    Number(text.slice(11, 13)) < 24 &&
    day <= ([31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0)
  );
}

function scalar(type: ScalarType | undefined): z.ZodType {
  switch (type) {
    case ScalarType.STRING:
      return text();
    case ScalarType.BOOL:
      return truth();
    case ScalarType.BYTES:
      return z.base64(says('must be base64 in a string')).openapi({ contentEncoding: 'base64' } as object);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return uint32();
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32: {
      const error = says(`must be a whole number from ${MIN_INT32} to ${MAX_INT32}`);
      return z.int(error).min(MIN_INT32, error).max(MAX_INT32, error);
    }
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return uint64();
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return written(/^-?\d{1,19}$/, INT64, (text) => BigInt.asIntN(64, BigInt(text)) === BigInt(text));
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
    case undefined:
      throw new Error(`nobody has said how the scalar type ${type} is written`);
  }
}

const MOMENT = says('must be a time in RFC 3339, such as "2026-12-01T10:00:00.000123Z"');
const LENGTH = says('must be a length of time in seconds, such as "12.5s"');

const WELL_KNOWN: Readonly<Record<string, () => z.ZodType>> = {
  'google.protobuf.Timestamp': () =>
    written(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/,
      MOMENT,
      (text) => isOnTheCalendar(text) && decodes(TimestampSchema)(text),
    ).openapi({ format: 'date-time', example: '2026-12-01T10:00:00.000123Z' }),
  'google.protobuf.Duration': () =>
    written(/^-?\d{1,12}(?:\.\d{1,9})?s$/, LENGTH, decodes(DurationSchema)).openapi({ example: '12.500s' }),
  'google.protobuf.Struct': () => z.record(z.string(), z.unknown()),
};
