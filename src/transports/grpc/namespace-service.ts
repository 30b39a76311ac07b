import type * as wire from '../../gen/writ/v1/namespace_service.js';
import type { NamespaceView } from '../../services/api.js';
import { RequestReader, toTimestamp } from './convert.js';
import type { CallHandler } from './handler.js';

/** NamespaceService over gRPC. */
export function namespaceService(handler: CallHandler): wire.NamespaceServiceServer {
  return {
    createNamespace: handler.unary('NamespaceService/CreateNamespace', async (api, call, request) => {
      const { namespace, created } = await api.createNamespace(call.within(request.name), { name: request.name });
      return { namespace: toNamespace(namespace), created };
    }),
    getNamespace: handler.unary('NamespaceService/GetNamespace', async (api, call, request) => ({
      namespace: toNamespace(await api.getNamespace(call.within(request.name), { name: request.name })),
    })),
    listNamespaces: handler.unary('NamespaceService/ListNamespaces', async (api, call, request) => {
      const reader = new RequestReader();
      const page = reader.page(request.page, 'page');
      reader.done();
      const { items, nextToken } = await api.listNamespaces(call, { page });
      return { namespaces: items.map(toNamespace), nextPageToken: nextToken };
    }),
  };
}

function toNamespace(view: NamespaceView): wire.Namespace {
  return {
    name: view.name,
    createdAt: toTimestamp(view.createdAt),
    logRevision: BigInt(view.revision),
    conflictMapVersion: BigInt(view.mapVersion),
    liveLeases: view.liveLeases,
    waitingRequests: view.waitingRequests,
    liveRuns: view.liveRuns,
  };
}
