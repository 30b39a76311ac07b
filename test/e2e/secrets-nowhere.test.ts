import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callers } from '../support/secrets-nowhere/callers.js';
import { gateways } from '../support/secrets-nowhere/gateways.js';
import { leasesAndCredentials } from '../support/secrets-nowhere/leases-and-credentials.js';
import { operators } from '../support/secrets-nowhere/operators.js';
import { starts } from '../support/secrets-nowhere/starts.js';
import { troubles } from '../support/secrets-nowhere/troubles.js';
import {
  begin,
  codes,
  coordinator,
  database,
  end,
  file,
  handles,
  held,
  issued,
  noted,
  rpcs,
  secrets,
  textFiles,
  written,
} from '../support/secrets-nowhere/world.js';

/**
 * A3: secrets stand in no log, error, event or metric. Coordinators as users run them, at the most talkative level, with
 * every RPC and route, commands, refusals, forgeries, rotations, broken files and a database that dies; then all that
 * was written is searched for each secret that took part.
 *
 * Two kinds are told apart. Secrets proper: whoever has one can be somebody. They stand nowhere but in the answer that
 * hands them out. Handles: lease ids and fencing tokens, which mean something to who may present them; they stand in the
 * events and in answers to those who may see them, and not in logs, errors, metrics, spans, or answers to strangers.
 */

beforeAll(begin, 120_000);
afterAll(end);

describe('a full run', () => {
  leasesAndCredentials();
  callers();
  gateways();
  operators();
  troubles();
  starts();

  it('went everywhere', () => {
    written.add('the log', coordinator.said());
    written.add('spans', readFileSync(file('spans.ndjson'), 'utf8'));
    written.add('the log of Postgres', readFileSync(join(database.dataDir, 'postgres.log'), 'latin1'));
    written.add('files of the data directory', ...textFiles(file('data')));
    const checkpointKey = readFileSync(join(file('data'), 'checkpoint-key.pem'), 'utf8');
    secrets.addPrivateKey('the key of checkpoints', checkpointKey);
    expect([...codes.keys()].sort()).toEqual(rpcs.map(({ method }) => method).sort());
    const all = new Set([...codes.values()].flatMap((seen) => [...seen]));
    for (const code of ['OK', 'UNAUTHENTICATED', 'PERMISSION_DENIED', 'INVALID_ARGUMENT', 'NOT_FOUND', 'UNAVAILABLE'])
      expect(all).toContain(code);
    expect([...all].filter((code) => ['INTERNAL', 'UNKNOWN', 'UNIMPLEMENTED'].includes(code))).toEqual([]);
    for (const method of ['IssueCredential', 'RevokeCredential', 'RotateSigningKey', 'RetireSigningKey'])
      expect(codes.get(`CredentialService/${method}`)).toContain('OK');
    expect(issued.length).toBeGreaterThanOrEqual(6);
    expect(written.of('spans').split('\n').length).toBeGreaterThan(rpcs.length);
    // What was left out of the log could not be searched. In the floods it is left out on purpose.
    expect(noted.beforeFloods).toContain('"rpc"');
    expect(noted.beforeFloods).not.toContain('suppressed_lines');
  });

  it('left every table without a secret', async () => {
    const sql = new pg.Client({ connectionString: database.url });
    await sql.connect();
    const { rows: tables } = await sql.query<{ name: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables WHERE table_schema = 'writ'`,
    );
    for (const { name } of tables) {
      const { rows } = await sql.query<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM ${name} AS t`);
      written.add('the database', ...rows.map(({ row }) => row));
    }
    await sql.end();
    // Events are there in full, so that the search means something.
    expect(written.of('the database')).toContain(held.leaseId);
    expect(written.of('the export')).toContain('credentials_issued');
  });
});

describe('after it', () => {
  it('no secret stands in any log, error, event, metric, span, answer or file', () => {
    expect(written.leaks(secrets)).toEqual([]);
  });

  it('lease ids and fencing tokens stand only where they are meant to be read', () => {
    const meant = ['the database', 'the export', 'answers over gRPC', 'commands', 'HTTP'];
    expect(written.leaks(handles, meant)).toEqual([]);
    // Over HTTP a target reads the claims of what was presented to it, and metrics name nobody.
    expect(handles.findIn(written.of('metrics'))).toEqual([]);
  });
});
