import { copyFile, readFile, stat, truncate } from 'node:fs/promises';
import type { Cluster } from './cluster.js';
import { absent, messageOf, withCause } from './errors.js';

const ROTATE_AT_START_BYTES = 1 << 20;
const ROTATE_WHILE_RUNNING_BYTES = 16 << 20;
const CHECK_INTERVAL_MS = 30_000;
const TAIL_BYTES = 4096;

/** Before a start, when it costs nothing. */
export async function rotateAtStart(cluster: Cluster): Promise<void> {
  await rotateAbove(cluster, ROTATE_AT_START_BYTES);
}

/** Keeps the log bounded while the server runs; returns what ends that. Keeps no process alive. */
export function keepLogBounded(cluster: Cluster): () => void {
  const timer = setInterval(() => void rotateAbove(cluster, ROTATE_WHILE_RUNNING_BYTES), CHECK_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** What the server said last, at most since that offset. */
export async function logTail(cluster: Cluster, since = 0): Promise<string> {
  const content = await readFile(cluster.logFile).catch(absent);
  if (content === undefined) return '';
  return content
    .subarray(Math.max(since, content.length - TAIL_BYTES))
    .toString('utf8')
    .trim();
}

/** An error that says what the server said. */
export async function serverFailure(
  cluster: Cluster,
  message: string,
  since?: number,
  cause?: unknown,
): Promise<Error> {
  const reason = cause === undefined ? '' : `: ${messageOf(cause)}`;
  const tail = (await logTail(cluster, since)) || '(empty)';
  return withCause(`${message}${reason}. The end of its log, ${cluster.logFile}:\n${tail}`, cause);
}

/** The server holds the file open for appending, so it is copied and cut rather than renamed. */
async function rotateAbove(cluster: Cluster, maxBytes: number): Promise<void> {
  const size = (await stat(cluster.logFile).catch(() => undefined))?.size ?? 0;
  if (size <= maxBytes) return;
  try {
    await copyFile(cluster.logFile, `${cluster.logFile}.1`);
    await truncate(cluster.logFile);
  } catch (error) {
    cluster.log(`could not rotate ${cluster.logFile}: ${messageOf(error)}`);
  }
}
