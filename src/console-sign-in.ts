import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Authenticator } from './auth/authenticator.js';
import { OneTimeCodes } from './auth/one-time-codes.js';
import { type Config, ConfigError, type ConsoleOidcConfig } from './platform/config.js';
import type { Logger } from './platform/log.js';
import type { Metrics } from './platform/metrics.js';
import { OidcSignIn } from './transports/http/oidc-sign-in.js';
import { SignIn } from './transports/http/sign-in.js';

/** How people sign in at the console of this coordinator. */
export interface ConsoleSignIn {
  readonly signIn: SignIn;
  /** A link that signs in once, at this address of the console; null: only the embedded mode has them. */
  link(address: string): string | null;
}

export interface ConsoleSignInOptions {
  readonly config: Pick<Config, 'consoleUrl' | 'consoleOidc' | 'tls'>;
  readonly authenticator: Authenticator;
  /** Null: sessions are sealed with a key of this process, and end with it. */
  readonly keyEncryptionKey: Uint8Array | null;
  /** What one-time links stand for; null: there are none. */
  readonly token: string | null;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Throws a ConfigError when the client secret cannot be read. */
export async function createConsoleSignIn(options: ConsoleSignInOptions): Promise<ConsoleSignIn> {
  const { config, authenticator, token, metrics, log } = options;
  const { consoleUrl, consoleOidc } = config;
  const secure = config.tls !== null || (consoleUrl?.startsWith('https:') ?? false);
  const shared = { secret: options.keyEncryptionKey ?? randomBytes(32), consoleUrl, secure, log };
  const provider = consoleOidc === null ? null : await readProvider(consoleOidc);
  const codes = new OneTimeCodes();
  return {
    signIn: new SignIn({
      ...shared,
      authenticator,
      embedded: token === null ? null : { codes, token },
      oidc: provider === null ? null : new OidcSignIn({ ...shared, provider }),
      refused: (cause) => metrics.callerRefused(cause),
    }),
    link: (address) => (token === null ? null : `${consoleUrl ?? address}/#code=${codes.issue()}`),
  };
}

async function readProvider({ clientSecretFile, ...provider }: ConsoleOidcConfig) {
  return { ...provider, clientSecret: clientSecretFile === null ? null : await readSecret(clientSecretFile) };
}

async function readSecret(file: string): Promise<string> {
  let secret: string;
  try {
    secret = (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new ConfigError([`WRIT_CONSOLE_OIDC_CLIENT_SECRET_FILE: cannot be read (${(error as Error).message})`]);
  }
  if (secret === '') throw new ConfigError([`WRIT_CONSOLE_OIDC_CLIENT_SECRET_FILE: ${file} is empty`]);
  return secret;
}
