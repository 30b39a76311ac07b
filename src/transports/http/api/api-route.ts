import type { DescMessage } from '@bufbuild/protobuf';
import type { z } from '@hono/zod-openapi';
import type { MethodRoute } from '../../../auth/roles.js';

/** A route of the API, as far as its requests are read and the document describes it. */
export interface ApiRoute {
  readonly route: MethodRoute;
  readonly operationId: string;
  /** What it does: the first sentence is its title. */
  readonly comment: string;
  readonly parameters: readonly Parameter[];
  /** Of the request's body; null: it has none. */
  readonly body: z.ZodType | null;
  /** The message of the contract that the body is; null: it has none, or is no message. */
  readonly bodyMessage: DescMessage | null;
  /** The body has a document of up to 1 MiB, also where the RPC whose roles it goes by has none. */
  readonly hasDocument?: boolean;
  readonly answer: {
    readonly type: 'application/json' | 'application/schema+json' | 'application/x-ndjson' | 'text/event-stream';
    readonly schema: z.ZodType;
    /** It has an `ETag`. */
    readonly hasTag?: boolean;
  };
  /** About the one that its parameter names, in which the caller needs the role; or about none. */
  readonly scope: 'namespace' | 'none';
  /** It changes what has versions: `If-Match` says which one. */
  readonly needsVersion: boolean;
}

/** One value that is given in the path, the query or a header. */
export interface Parameter {
  readonly name: string;
  readonly place: 'path' | 'query' | 'header';
  /** As services and the contract name it in what they say is wrong. */
  readonly field: string;
  readonly schema: z.ZodType;
  /** What its text stands for in JSON. */
  readonly form: 'text' | 'number' | 'truth';
  readonly isList: boolean;
}
