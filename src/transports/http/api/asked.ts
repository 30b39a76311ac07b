import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Principal } from '../../../auth/principal.js';
import type { CallContext, Page, WritApi } from '../../../services/api.js';
import { RequestReader } from '../../messages/convert.js';
import type { RouteContext } from '../route.js';

/** A request to a route that gRPC has nothing like, as it is answered. */
export interface Asked {
  readonly c: RouteContext;
  readonly api: WritApi;
  /** As the call was authenticated, before any namespace. */
  readonly caller: Principal;
  readonly context: CallContext;
  /** Of the path, the query and the headers. */
  readonly values: ReadonlyMap<string, JsonValue>;
  readonly body: JsonObject;
  readonly version: string | null;
}

export const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

/** Log revisions and versions of the map; throws a Fault. */
export function countOf(value: JsonValue | undefined, field: string): number {
  const reader = new RequestReader();
  const count = reader.count(BigInt(textOf(value) || 0), field);
  reader.done();
  return count;
}

export function pageIn({ values }: Asked): Page {
  const reader = new RequestReader();
  const given = { pageSize: Number(values.get('page_size') ?? 0), pageToken: textOf(values.get('page_token')) };
  const page = reader.page(given, 'page');
  reader.done();
  return page;
}
