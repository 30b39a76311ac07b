import { setTimeout as pause } from 'node:timers/promises';
import { Refused, Service, type Write } from './service.js';

const WAIT_MS = 150;

type Client = Parameters<Service['change']>[0];

/** Looks for the key first and keeps it last: of two at once neither sees the other. */
export class KeyClaimedLate extends Service {
  /** Who has looked for a key, and goes on once another has too, or nobody came for a while. */
  private readonly looked = new Map<string, () => void>();

  protected override async remembered(client: Client, write: Write): Promise<string | null> {
    const { rows } = await client.query<{ fingerprint: string; version: string }>(
      'SELECT fingerprint, version FROM answered WHERE key = $1',
      [write.key],
    );
    if (rows[0] === undefined) {
      await this.another(write.key);
      return null;
    }
    if (rows[0].fingerprint !== this.fingerprint(write)) throw new Refused(422, 'idempotency_key_reused');
    return rows[0].version;
  }

  private async another(key: string | undefined): Promise<void> {
    if (key === undefined) return;
    const waiting = this.looked.get(key);
    if (waiting !== undefined) waiting();
    else await Promise.race([new Promise<void>((resolve) => this.looked.set(key, resolve)), pause(WAIT_MS)]);
    this.looked.delete(key);
  }

  protected override async remember(client: Client, write: Write, version: string): Promise<void> {
    await client.query('INSERT INTO answered VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
      write.key,
      this.fingerprint(write),
      version,
    ]);
  }
}
