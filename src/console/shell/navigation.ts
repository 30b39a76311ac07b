import type { Route } from '../pure/paths.js';

/** A screen in the navigation. */
export interface Destination {
  readonly path: string;
  readonly name: string;
  readonly key: string;
  readonly screens: readonly Route['screen'][];
  /** One of these methods must be allowed for the screen to show anything; none: it is for everybody. */
  readonly needs: readonly string[];
}

export const DESTINATIONS: readonly Destination[] = [
  { path: '/', name: 'Overview', key: 'g o', screens: ['overview'], needs: ['RunService/ListRuns'] },
  { path: '/live', name: 'Live', key: 'g l', screens: ['live', 'lease'], needs: ['LeaseService/ListLeases'] },
  { path: '/runs', name: 'Runs', key: 'g r', screens: ['runs', 'run'], needs: ['RunService/ListRuns'] },
  { path: '/resource', name: 'Resource', key: 'g w', screens: ['resource'], needs: ['LeaseService/FindBlockers'] },
  { path: '/map', name: 'Conflict map', key: 'g m', screens: ['map'], needs: ['ConflictMapService/GetConflictMap'] },
  { path: '/log', name: 'Log', key: 'g e', screens: ['log'], needs: ['AuditService/ListEvents'] },
  { path: '/keys', name: 'Keys', key: 'g k', screens: ['keys'], needs: ['CredentialService/ListSigningKeys'] },
  { path: '/reasons', name: 'Runbook', key: 'g c', screens: ['reasons'], needs: [] },
];
