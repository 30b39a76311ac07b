import { z } from 'zod';
import { exportLines } from '../services/log-export.js';
import type { TargetRecord } from '../services/reconcile.js';
import { CliError } from './cli.js';
import { EXIT } from './exit-codes.js';

/** More are compared in parts. */
const MAX_RECORDS = 1_000_000;

/** As `writeRecords().list` gives them, in JSON; what else a record says is not compared. */
const recordForm = z.object({
  recordedAt: z.iso.datetime({ offset: true }),
  identity: z.string(),
  runId: z.string().optional(),
  requestId: z.string(),
  resource: z.string().min(1),
  action: z.string(),
  result: z.string().min(1),
  newVersion: z.string().optional(),
});

/** The records of a target: NDJSON, one a line. */
export async function readTargetRecords(file: string, chunks: AsyncIterable<Uint8Array>): Promise<TargetRecord[]> {
  const records: TargetRecord[] = [];
  let number = 0;
  for await (const { text } of exportLines(chunks)) {
    number += 1;
    if (text?.trim() === '') continue;
    const record = recordForm.safeParse(jsonOf(text));
    if (!record.success) {
      const [issue] = record.error.issues;
      const where = issue?.path.join('.') || 'it';
      throw new CliError(EXIT.usage, `${file}, line ${number} is no record of a write: ${where}: ${issue?.message}.`);
    }
    if (records.length >= MAX_RECORDS)
      throw new CliError(EXIT.usage, `${file} has more than ${MAX_RECORDS} records; compare them in parts.`);
    const { recordedAt, runId = '', newVersion = null, ...rest } = record.data;
    const { identity, requestId, resource, action, result } = rest;
    const at = Date.parse(recordedAt) * 1_000;
    records.push({ line: number, at, identity, runId, requestId, resource, action, result, newVersion });
  }
  return records;
}

function jsonOf(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}
