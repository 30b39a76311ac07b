import type { RefusalViews } from '../messages/views.js';
import { auditMethods } from './audit-methods.js';
import { conflictMapMethods } from './conflict-map-methods.js';
import { credentialMethods } from './credential-methods.js';
import { fenceMethods } from './fence-methods.js';
import { leaseMethods } from './lease-methods.js';
import { namespaceMethods } from './namespace-methods.js';
import { runMethods } from './run-methods.js';

/** All RPCs with one answer, by service. */
export function createMethods(views: RefusalViews) {
  return {
    LeaseService: leaseMethods(views),
    FenceService: fenceMethods,
    CredentialService: credentialMethods(views),
    RunService: runMethods,
    ConflictMapService: conflictMapMethods(views),
    AuditService: auditMethods,
    NamespaceService: namespaceMethods,
  };
}
