/**
 * An ordered change for tests (W5): deploy an image, then shift the route to it, then announce it. Each step is a write
 * of one row under a version condition.
 * @param {'in_transaction' | 'elsewhere_too'} [effects]  of the second step
 * @param {(client: import('pg').PoolClient) => Promise<void>} [inSecond]  what happens in the middle of the second step
 * @returns {import('../../src/clients/target/index.js').OrderedChange<{ env: string, image: string }>}
 */
export function shiftTraffic(effects = 'in_transaction', inSecond = async () => undefined) {
  return {
    name: 'shift-traffic',
    steps: [
      step('deployment', 'in_transaction', async () => undefined),
      step('route', effects, inSecond),
      {
        ...step('notice', 'in_transaction', async () => undefined),
        undo: { cannot: 'a notice that was read stays read' },
      },
    ],
  };
}

/**
 * @param {string} table
 * @param {'in_transaction' | 'elsewhere_too'} effects
 * @param {(client: import('pg').PoolClient) => Promise<void>} during
 * @returns {import('../../src/clients/target/index.js').OrderedStep<{ env: string, image: string }>}
 */
function step(table, effects, during) {
  const versionNow = async (/** @type {import('pg').PoolClient} */ client, /** @type {string} */ env) =>
    (await client.query(`SELECT version FROM ${table} WHERE env = $1`, [env])).rows[0]?.version;
  return {
    name: table,
    effects,
    async run({ client, input }) {
      const { rows } = await client.query(`SELECT image, version FROM ${table} WHERE env = $1`, [input.env]);
      const [before] = rows;
      const changed = await client.query(
        `UPDATE ${table} SET image = $1, version = version + 1 WHERE env = $2 AND version = $3 RETURNING version`,
        [input.image, input.env, before.version],
      );
      await during(client);
      return { image: before.image, version: changed.rows[0].version };
    },
    async holds({ client, input, result }) {
      return (await versionNow(client, input.env)) === /** @type {{ version: string }} */ (result).version;
    },
    async undo({ client, input, result }) {
      const { image, version } = /** @type {{ image: string, version: string }} */ (result);
      const { rowCount } = await client.query(
        `UPDATE ${table} SET image = $1, version = version + 1 WHERE env = $2 AND version = $3`,
        [image, input.env, version],
      );
      return rowCount === 1 ? 'undone' : 'changed_since';
    },
  };
}
