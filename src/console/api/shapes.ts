import type { components } from '../api-types.js';

/**
 * The shapes of the HTTP API, from its OpenAPI document: proto3 JSON, in which a 64-bit number is a string. What names a
 * thing is always there; any other member may be absent, which means the same as empty, so that a coordinator of another
 * version breaks no screen.
 */
type Schemas = components['schemas'];

/** Members that name a thing, or without which it says nothing. */
type Naming =
  | 'admissionId'
  | 'hash'
  | 'keyId'
  | 'kind'
  | 'leaseId'
  | 'name'
  | 'namespace'
  | 'pattern'
  | 'publicKey'
  | 'resource'
  | 'revision'
  | 'runId'
  | 'signature'
  | 'time';

type Told<T> = T extends readonly (infer One)[]
  ? readonly Told<One>[]
  : T extends object
    ? { readonly [Key in Exclude<keyof T, Naming>]?: Told<T[Key]> } & {
        readonly [Key in Extract<keyof T, Naming>]-?: Told<NonNullable<T[Key]>>;
      }
    : T;

/** What a call answers. */
export type Answer<Name extends keyof Schemas> = Told<Schemas[Name]>;

export type AffectedLease = Answer<'AffectedLease'>;
export type Allowance = Answer<'Allowance'>;
export type Blocker = Answer<'Blocker'>;
export type Checkpoint = Answer<'Checkpoint'>;
export type ConflictMap = Answer<'GetConflictMapResponse'>;
export type ConflictStep = Answer<'ConflictStep'>;
export type Freeze = Answer<'Freeze'>;
export type Lease = Answer<'Lease'>;
export type LeaseEntry = Answer<'LeaseEntry'>;
export type LogEvent = Answer<'Event'>;
export type MapProblem = Answer<'MapProblem'>;
export type MapVersion = Answer<'ConflictMapVersion'>;
export type Namespace = Answer<'Namespace'>;
export type OpenWrite = Answer<'OpenWrite'>;
export type Refusal = Answer<'Refusal'>;
export type Rehearsal = Answer<'Rehearsal'>;
export type RuleAbout = Answer<'RuleAbout'>;
export type Run = Answer<'Run'>;
export type SigningKey = Answer<'SigningKey'>;
export type TaskPair = Answer<'TaskPair'>;
export type UnmatchedResource = Answer<'UnmatchedResource'>;

/** What a list answers: one page, and how to get the next. */
export interface Page {
  readonly nextPageToken?: string;
  readonly logRevision?: string;
}
