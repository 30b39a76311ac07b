import type { CallContext, WritApi } from '../../services/api.js';

/** The RPCs of the contract as they are served, whichever way they are called: convert, call the service, convert back. */

/** One call, as its transport knows it: authenticated, authorised and let in. */
export interface MethodCall extends CallContext {
  /** The same call, about this namespace; throws where it was authorised for another. */
  within(namespace: string): CallContext;
}

/** An RPC with one answer. */
export type Unary<Request, Response> = (api: WritApi, call: MethodCall, request: Request) => Promise<Response>;

/** An RPC that answers in parts. */
export type Parts<Request, Response> = (api: WritApi, call: MethodCall, request: Request) => AsyncIterable<Response>;

/** The RPCs with one answer of a service, as the generated code declares it. */
export type UnaryMethods<Service> = {
  readonly [Name in keyof Known<Service> as IsUnary<Service[Name]> extends true ? Name : never]: UnaryOf<Service[Name]>;
};

/** Without the index signature. */
type Known<Service> = { [Name in keyof Service as string extends Name ? never : Name]: Service[Name] };

type IsUnary<Handle> = Handle extends (...given: infer Given) => void
  ? Given['length'] extends 2
    ? true
    : false
  : false;

type UnaryOf<Handle> = Handle extends (call: infer Call, callback: infer Callback) => void
  ? Call extends { readonly request: infer Request }
    ? Callback extends (error: null, value?: infer Response) => void
      ? Unary<Request, NonNullable<Response>>
      : never
    : never
  : never;
