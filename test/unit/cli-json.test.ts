import { describe, expect, it } from 'vitest';
import { durationJson, momentJson } from '../../src/cli/time-json.js';
import { protoJson } from '../../src/contract/proto-json.js';
import { ListCheckpointsResponse } from '../../src/gen/writ/v1/audit_service.js';
import { GetLeaseResponse } from '../../src/gen/writ/v1/lease_service.js';
import { LeaseState } from '../../src/gen/writ/v1/types.js';
import { cli } from '../support/cli.js';

const lease = GetLeaseResponse.fromPartial({
  lease: {
    leaseId: 'l',
    state: LeaseState.LEASE_STATE_ACTIVE,
    entries: [{ resource: 'a', fencingToken: 2n ** 60n }],
    expiresAt: { seconds: 1_764_425_000n, nanos: 123_456_000 },
    expiresIn: { seconds: 1n, nanos: 500_000_000 },
  },
  logRevision: 7n,
});

describe('--json', () => {
  it('is proto3 JSON: camelCase, exact times, durations with their unit, 64-bit numbers as text, names of enums', async () => {
    const { json } = await cli(['lease', 'get', 'l', '--json'], { client: { lease: { getLease: async () => lease } } });
    expect(json()).toEqual({
      lease: {
        leaseId: 'l',
        state: 'LEASE_STATE_ACTIVE',
        entries: [{ resource: 'a', fencingToken: '1152921504606846976' }],
        expiresAt: '2025-11-29T14:03:20.123456Z',
        expiresIn: '1.500s',
      },
      logRevision: '7',
    });
    expect(protoJson(GetLeaseResponse, GetLeaseResponse.fromPartial({}))).toEqual({});
  });

  it('lists checkpoints as they were signed, and where they were sent; else as a table', async () => {
    const checkpoint = {
      namespace: 'default',
      revision: 7n,
      hash: Buffer.alloc(32, 10),
      keyId: 'abc',
      publicKey: 'pem',
    };
    const page = ListCheckpointsResponse.fromPartial({
      checkpoints: [{ checkpoint: { ...checkpoint, time: { seconds: 1_764_425_000n } }, sentTo: 'log of writ-0' }],
    });
    const client = { audit: { listCheckpoints: async () => page } };
    const { json } = await cli(['audit', 'checkpoints', '--json'], { client });
    expect(json()).toMatchObject({ checkpoints: [{ checkpoint: { revision: '7' }, sentTo: 'log of writ-0' }] });
    const { stdout } = await cli(['audit', 'checkpoints'], { client });
    expect(stdout).toMatch(/WHEN +REVISION +HASH +SIGNED BY +SENT TO/);
    expect(stdout).toMatch(new RegExp(`7 +${'0a'.repeat(32)} +abc +log of writ-0`));
    const none = await cli(['audit', 'checkpoints'], {
      client: { audit: { listCheckpoints: async () => ListCheckpointsResponse.fromPartial({}) } },
    });
    expect(none.stdout).toContain('No checkpoint has been signed yet');
  });

  it('says times and lengths of time of its own in the same way', () => {
    expect([durationJson(12), durationJson(60_000), momentJson(1_764_425_000_000_001)]).toEqual([
      '0.012s',
      '60s',
      '2025-11-29T14:03:20.000001Z',
    ]);
  });
});
