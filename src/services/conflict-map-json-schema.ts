import { z } from 'zod';
import { document } from './conflict-map-schema.js';

let schema: object | undefined;

/**
 * The form of a conflict map as a JSON schema (2020-12), for editors. It says less than the coordinator checks: what
 * names refer to, and what patterns, durations and times may be, is told by validation.
 */
export function mapJsonSchema(): object {
  schema ??= z.toJSONSchema(document, { io: 'input', unrepresentable: 'any', override: asWritten });
  return schema;
}

/** Scalars are read as the text they are written as; in an editor they are what YAML makes of them. */
function asWritten({ jsonSchema }: { readonly jsonSchema: Record<string, unknown> }): void {
  const { enum: values } = jsonSchema;
  if (Array.isArray(values) && values.join() === 'true,false') {
    delete jsonSchema.enum;
    jsonSchema.type = 'boolean';
  }
  if (jsonSchema.const === '1') {
    jsonSchema.type = 'integer';
    jsonSchema.const = 1;
  }
}
