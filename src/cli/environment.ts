import { resolve } from 'node:path';
import { parseEndpoint } from '../clients/common/channel.js';

/** As much of the environment as is handed over by src/cli/index.ts, the only place of the CLI that reads it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What the environment says about which coordinator to call, and as whom. Options go before it. */
export interface ClientConfig {
  /** WRIT_ENDPOINT; else 127.0.0.1 and WRIT_GRPC_PORT, 7410. */
  readonly endpoint: string;
  /** WRIT_TOKEN. */
  readonly token: string | null;
  /** WRIT_TOKEN_FILE: a file with nothing but a token. */
  readonly tokenFile: string | null;
  /** WRIT_DATA_DIR, ./.writ; absolute. Its dev-tokens.json is used when there is no token. */
  readonly dataDir: string;
  /** WRIT_CA_FILE, WRIT_CLIENT_CERT_FILE, WRIT_CLIENT_KEY_FILE; absolute. */
  readonly caFile: string | null;
  readonly clientCertFile: string | null;
  readonly clientKeyFile: string | null;
  /** WRIT_ALLOW_INSECURE=beyond-loopback: tokens may travel unencrypted to other machines. */
  readonly allowInsecure: boolean;
  /** WRIT_NAMESPACE; empty: the coordinator's "default". */
  readonly namespace: string;
  /** NO_COLOR (https://no-color.org). */
  readonly noColor: boolean;
  /** TRACEPARENT of the caller, passed on with every call. */
  readonly traceparent: string | null;
}

/** The variables that say whom to call, for an error that names them. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

/**
 * Reads what a client needs. An empty variable counts as unset.
 *
 * @example
 * const config = readClientConfig(process.env);
 */
export function readClientConfig(env: Environment): ClientConfig {
  const given = (name: string): string | null => {
    const text = env[name]?.trim();
    return text === undefined || text === '' ? null : text;
  };
  const file = (name: string): string | null => {
    const path = given(name);
    return path === null ? null : resolve(path);
  };
  return {
    endpoint: endpointOf(given('WRIT_ENDPOINT'), given('WRIT_GRPC_PORT')),
    token: given('WRIT_TOKEN'),
    tokenFile: file('WRIT_TOKEN_FILE'),
    dataDir: resolve(given('WRIT_DATA_DIR') ?? './.writ'),
    caFile: file('WRIT_CA_FILE'),
    clientCertFile: file('WRIT_CLIENT_CERT_FILE'),
    clientKeyFile: file('WRIT_CLIENT_KEY_FILE'),
    allowInsecure: given('WRIT_ALLOW_INSECURE') === 'beyond-loopback',
    namespace: given('WRIT_NAMESPACE') ?? '',
    noColor: given('NO_COLOR') !== null,
    traceparent: given('TRACEPARENT'),
  };
}

/** The shell that started the coordinator on another port need not say it twice; port 0 says nothing. */
function endpointOf(endpoint: string | null, port: string | null): string {
  const text = endpoint ?? `127.0.0.1:${port !== null && /^[1-9]\d{0,4}$/.test(port) ? port : 7410}`;
  try {
    parseEndpoint(text);
  } catch (error) {
    throw new EnvironmentError(`WRIT_ENDPOINT: ${error instanceof Error ? error.message : String(error)}`);
  }
  return text;
}
