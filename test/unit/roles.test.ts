import { describe, expect, it } from 'vitest';
import { type Principal, ROLES, type Role } from '../../src/auth/principal.js';
import { authorize, type Method, rolesFor, seesOtherRuns } from '../../src/auth/roles.js';
import { Fault } from '../../src/domain/fault.js';
import * as extAuthz from '../../src/gen/envoy/service/auth/v3/external_auth.js';
import * as audit from '../../src/gen/writ/v1/audit_service.js';
import * as conflictMap from '../../src/gen/writ/v1/conflict_map_service.js';
import * as credential from '../../src/gen/writ/v1/credential_service.js';
import * as fence from '../../src/gen/writ/v1/fence_service.js';
import * as lease from '../../src/gen/writ/v1/lease_service.js';
import * as namespace from '../../src/gen/writ/v1/namespace_service.js';
import * as run from '../../src/gen/writ/v1/run_service.js';

const GENERATED = [extAuthz, audit, conflictMap, credential, fence, lease, namespace, run];

/** Every RPC of the contract, as `Service/Method`. */
const METHODS = GENERATED.flatMap((module) => Object.entries(module))
  .filter(([name]) => /(Service|^Authorization)Service$/.test(name))
  .flatMap(([, definition]) => Object.values(definition as unknown as Record<string, { path: string }>))
  .map(({ path }) => path.slice(path.lastIndexOf('.') + 1));

function principal(...roles: Role[]): Principal {
  return { name: 'somebody', roles: new Set(roles) };
}

function refused(who: Principal, method: string): Fault {
  try {
    authorize(who, method as Method, 'default');
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error(`${method} was allowed`);
}

describe('the table of roles', () => {
  it('covers every RPC of the contract', () => {
    expect(METHODS.length).toBeGreaterThan(25);
    expect(METHODS.filter((method) => rolesFor(method) === undefined)).toEqual([]);
  });

  it.each([
    ['LeaseService/AcquireWriteSet', ['runner']],
    ['LeaseService/RevokeLease', ['operator', 'admin']],
    ['FenceService/CheckFence', ['target']],
    ['ConflictMapService/PutConflictMap', ['admin']],
    ['RunService/StopRun', ['operator', 'admin', 'runner']],
    ['AuditService/ExportEvents', ['auditor', 'admin']],
    ['NamespaceService/GetNamespace', ROLES],
  ] as const)('%s is for %j alone', (method, roles) => {
    for (const role of ROLES) {
      if ((roles as readonly Role[]).includes(role)) authorize(principal(role), method, 'default');
      else expect(refused(principal(role), method).reason).toBe('ROLE_REQUIRED');
    }
  });

  it('names the roles that would do', () => {
    const fault = refused(principal('target'), 'LeaseService/RevokeLease');
    expect(fault.faultClass).toBe('permission_denied');
    expect(fault.message).toContain('operator, admin');
    expect(fault.details.metadata).toEqual({ required_roles: 'operator,admin' });
  });

  it('allows nobody what it does not know', () => {
    for (const method of ['LeaseService/Nothing', 'toString', '__proto__']) refused(principal(...ROLES), method);
  });

  it('shows the runs behind blockers to operators, admins and auditors', () => {
    expect(ROLES.filter((role) => seesOtherRuns(principal(role)))).toEqual(['admin', 'operator', 'auditor']);
  });

  describe('in a namespace', () => {
    const who: Principal = {
      name: 'somebody',
      roles: new Set(['auditor']),
      namespaceRoles: new Map([['team-a', new Set<Role>(['runner'])]]),
    };
    const local: Principal = { ...who, roles: new Set() };

    it('adds to those that hold everywhere', () => {
      expect([...authorize(who, 'LeaseService/AcquireWriteSet', 'team-a').roles]).toEqual(['auditor', 'runner']);
      expect(refused(who, 'LeaseService/AcquireWriteSet').reason).toBe('ROLE_REQUIRED');
      expect([...authorize(who, 'AuditService/ListEvents', 'default').roles]).toEqual(['auditor']);
    });

    it('ends at its border, also for what everybody may do', () => {
      authorize(local, 'NamespaceService/GetNamespace', 'team-a');
      expect(refused(local, 'NamespaceService/GetNamespace').message).toContain('none there');
    });

    it('is enough for a call that concerns no namespace', () => {
      expect(authorize(local, 'NamespaceService/ListNamespaces', null)).toBe(local);
      expect(() => authorize(local, 'FenceService/CheckFence', null)).toThrow(/one of the roles target/);
    });
  });
});
