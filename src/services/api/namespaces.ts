import type { Micros } from '../../domain/time.js';
import type { CallContext, Page, Paged } from './calls.js';

export interface NamespaceView {
  /** That it lives in. */
  readonly database: string;
  readonly name: string;
  /** Null: the event that said so is in an archive, the log was cut. */
  readonly createdAt: Micros | null;
  readonly revision: number;
  readonly mapVersion: number;
  readonly liveLeases: number;
  readonly waitingRequests: number;
  readonly liveRuns: number;
}

/** Namespaces. */
export interface NamespaceApi {
  createNamespace(
    context: CallContext,
    /** Without `database`: the main one, or wherever it lives already. */
    input: { name: string; database?: string | null },
  ): Promise<{ namespace: NamespaceView; created: boolean }>;
  getNamespace(context: CallContext, input: { name: string }): Promise<NamespaceView>;
  listNamespaces(context: CallContext, input: { page: Page }): Promise<Paged<NamespaceView>>;
}
