import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readKeyEncryptionKey } from '../../auth/key-encryption-key.js';
import { readPrincipalsFile } from '../../auth/principals-file.js';
import { wallClockMicros } from '../../platform/clock.js';
import type { Config } from '../../platform/config.js';
import { expiryWarning, loadTls } from '../../platform/server-tls.js';
import { isLoopback } from '../../platform/settings.js';
import { readCheckpointKey } from '../../services/checkpoint-signer.js';
import { loadRoutes } from '../../services/route-tables.js';
import { reasonOf } from '../commands/migrate.js';
import { counted } from '../show.js';
import { type Finding, ok, skipped, warning, wrong } from './finding.js';

/** The files that the settings name, each read as `writ serve` would, and none made. */
export function files(config: Config): Promise<Finding[]> {
  return Promise.all([tokens(config), tls(config), credentialKey(config), checkpointKey(config), routes(config)]);
}

async function tokens(config: Config): Promise<Finding> {
  if (config.tokensFile !== null) {
    try {
      const { principals, issuers } = await readPrincipalsFile(config.tokensFile);
      const more = issuers.length === 0 ? '' : `, ${counted(issuers.length, 'issuer')}`;
      return ok(
        'tokens',
        `${config.tokensFile}: ${principals.length} ${principals.length === 1 ? 'entry' : 'entries'}${more}`,
      );
    } catch (error) {
      return wrong('tokens', reasonOf(error));
    }
  }
  const path = join(config.dataDir, 'dev-tokens.json');
  const found = await stat(path).catch(() => null);
  if (found === null) return ok('tokens', `${path} will be made at the first start`);
  return (found.mode & 0o077) === 0
    ? ok('tokens', path)
    : wrong('tokens', `${path} can be read by others: chmod 600 it`);
}

/** Whether the files fit together, and how long they last. */
async function tls({ tls: files, host }: Config): Promise<Finding> {
  if (files === null) {
    return isLoopback(host)
      ? skipped('TLS', 'none; both ports listen on loopback')
      : warning('TLS', `none, and ${host} is reachable from other machines: tokens travel unencrypted`);
  }
  try {
    const { notAfterMs } = await loadTls(files);
    const ending = expiryWarning(files.certFile, notAfterMs);
    if (ending === null) return ok('TLS', `${files.certFile}, until ${new Date(notAfterMs).toISOString()}`);
    return notAfterMs * 1_000 < wallClockMicros() ? wrong('TLS', ending) : warning('TLS', ending);
  } catch (error) {
    return wrong('TLS', reasonOf(error));
  }
}

/** What encrypts the keys that sign credentials. */
async function credentialKey(config: Config): Promise<Finding> {
  const what = 'credential key';
  const embedded = config.databaseUrl === null;
  try {
    const key = await readKeyEncryptionKey({ ...config, madeIn: null });
    if (key !== null) return ok(what, config.keyEncryptionKeyFile ?? 'WRIT_KEY_ENCRYPTION_KEY');
    return embedded
      ? ok(what, `made in ${config.dataDir} at the first start`)
      : warning(what, 'none: no credentials are issued; see WRIT_KEY_ENCRYPTION_KEY_FILE');
  } catch (error) {
    return wrong(what, reasonOf(error));
  }
}

/** What signs checkpoints of the logs (A2). */
async function checkpointKey({ checkpointKeyFile, dataDir }: Config): Promise<Finding> {
  const what = 'checkpoint key';
  const path = checkpointKeyFile ?? join(dataDir, 'checkpoint-key.pem');
  try {
    return ok(what, readCheckpointKey(path) === null ? `${path} will be made at the first start` : path);
  } catch (error) {
    return wrong(what, reasonOf(error));
  }
}

/** Which requests make which writes, for gateways. */
async function routes({ routesFile }: Config): Promise<Finding> {
  if (routesFile === null) return skipped('routes', 'WRIT_ROUTES_FILE is not set');
  try {
    const { shared, byTarget } = await loadRoutes(routesFile);
    const whose = shared === null ? counted(byTarget.size, 'target') : 'every target';
    return ok('routes', `${routesFile}: for ${whose}`);
  } catch (error) {
    return wrong('routes', reasonOf(error));
  }
}
