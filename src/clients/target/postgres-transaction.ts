import type { Pool, PoolClient } from 'pg';

/**
 * Runs work in a transaction of its own, under READ COMMITTED, as the guard needs it. Commits when the work returns;
 * whatever it throws rolls back. A connection that cannot even roll back is thrown away.
 */
export async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  let broken: Error | undefined;
  // A connection that ends while the work is busy elsewhere says so by an event, which ends the process if nobody listens.
  const note = (error: Error) => {
    broken = error;
  };
  const client = await connect(pool, note);
  try {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    const result = await work(client);
    const { command } = await client.query('COMMIT');
    // Postgres answers the COMMIT of a transaction that an ignored error has aborted with ROLLBACK, and no error.
    if (command !== 'COMMIT') throw new Error('the transaction was aborted by an error that the work ignored');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(note);
    throw error;
  } finally {
    client.off('error', note);
    client.release(broken);
  }
}

/**
 * Listens from the moment at which the pool has ceased to: a server can end in the packet of the answer that freed the
 * connection for us, before a promise has told of it.
 */
function connect(pool: Pool, onError: (error: Error) => void): Promise<PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) return reject(error);
      client.on('error', onError);
      resolve(client);
    });
  });
}
