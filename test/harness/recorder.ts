import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { WritError } from '../../src/clients/common/errors.js';
import type { EventRecord } from '../../src/storage/store.js';
import type { Call, CallKind, CallShapes, Fault, History, Loss, Moment, Outage, Reading } from './history.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Writes a history down while it happens. */
export class Recorder {
  readonly calls: Call[] = [];
  readonly readings: Reading[] = [];
  readonly outages: Outage[] = [];
  readonly losses: Loss[] = [];

  now(): Moment {
    return performance.now() * 1_000;
  }

  /** Answers so far. */
  get answers(): number {
    return this.calls.filter(({ told }) => told !== null).length;
  }

  /** What is told, or null for a fault, a lost answer, or none in time. */
  async call<K extends CallKind>(
    kind: K,
    by: string,
    of: string,
    asked: CallShapes[K]['asked'],
    ask: () => Promise<CallShapes[K]['told']>,
  ): Promise<CallShapes[K]['told'] | null> {
    const call = {
      id: this.calls.length + 1,
      kind,
      by,
      of,
      sent: this.now(),
      answered: null as Moment | null,
      asked,
      told: null as CallShapes[K]['told'] | null,
      fault: null as Fault | null,
    };
    this.calls.push(call as unknown as Mutable<Call>);
    try {
      const told = await ask();
      call.answered = this.now();
      call.told = told;
      return told;
    } catch (error) {
      call.fault =
        error instanceof WritError
          ? { code: error.code, reason: error.reason }
          : { code: 'UNKNOWN', reason: String(error) };
      return null;
    }
  }

  /** What somebody saw without asking anybody, at this moment. */
  saw<K extends CallKind>(
    kind: K,
    by: string,
    of: string,
    asked: CallShapes[K]['asked'],
    told: CallShapes[K]['told'],
  ): void {
    const at = this.now();
    const call = { id: this.calls.length + 1, kind, by, of, sent: at, answered: at, asked, told, fault: null };
    this.calls.push(call as unknown as Call);
  }

  /** Nothing can be decided while the work lasts, at this replica or at any. */
  async outage<T>(what: string, of: string, work: () => Promise<T>): Promise<T> {
    const from = this.now();
    try {
      return await work();
    } finally {
      this.outages.push({ from, until: this.now(), what, of });
    }
  }

  history(log: readonly EventRecord[]): History {
    const { calls, readings, outages, losses } = this;
    return { calls, readings, outages, losses, log };
  }

  /** Reads the database's clock again and again, past all proxies; returns how to end it. */
  watchClock(url: string): () => Promise<void> {
    let going = true;
    const watching = (async () => {
      while (going) {
        const client = new pg.Client({ connectionString: url, application_name: 'writ-harness-clock' });
        client.on('error', () => undefined);
        try {
          await client.connect();
          while (going) {
            const sent = this.now();
            const { rows } = await client.query(
              'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text AS now',
            );
            this.readings.push({ sent, answered: this.now(), database: Number(rows[0]?.now) });
            await pause(200);
          }
        } catch {
          await pause(100);
        } finally {
          await client.end().catch(() => undefined);
        }
      }
    })();
    return async () => {
      going = false;
      await watching;
    };
  }
}
