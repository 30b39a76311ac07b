import type * as wire from '../../gen/writ/v1/namespace_service.js';
import type { NamespaceView } from '../../services/api.js';
import { RequestReader, toTimestamp } from '../messages/convert.js';
import type { UnaryMethods } from './method.js';

/** The methods of NamespaceService. */
export const namespaceMethods: UnaryMethods<wire.NamespaceServiceServer> = {
  createNamespace: async (api, call, request) => {
    const { namespace, created } = await api.createNamespace(call.within(request.name), {
      name: request.name,
      database: request.database === '' ? null : request.database,
    });
    return { namespace: toNamespace(namespace), created };
  },
  getNamespace: async (api, call, request) => ({
    namespace: toNamespace(await api.getNamespace(call.within(request.name), { name: request.name })),
  }),
  listNamespaces: async (api, call, request) => {
    const reader = new RequestReader();
    const page = reader.page(request.page, 'page');
    reader.done();
    const { items, nextToken } = await api.listNamespaces(call, { page });
    return { namespaces: items.map(toNamespace), nextPageToken: nextToken };
  },
};

function toNamespace(view: NamespaceView): wire.Namespace {
  return {
    name: view.name,
    createdAt: view.createdAt === null ? undefined : toTimestamp(view.createdAt),
    logRevision: BigInt(view.revision),
    conflictMapVersion: BigInt(view.mapVersion),
    liveLeases: view.liveLeases,
    waitingRequests: view.waitingRequests,
    liveRuns: view.liveRuns,
    database: view.database,
  };
}
