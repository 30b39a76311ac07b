import { realpathSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { PrincipalsFileError } from './auth/principal-entry.js';
import { type Coordinator, createCoordinator } from './coordinator.js';
import { type Config, ConfigError, type Environment, readConfig, unreadVariables } from './platform/config.js';
import { DatabasesFileError } from './platform/databases-file.js';
import { tuneHeap } from './platform/heap.js';
import { EXIT, onStopSignal, StartError } from './platform/lifecycle.js';
import { createLogger, type Logger } from './platform/log.js';
import { TlsFilesError } from './platform/server-tls.js';
import { RoutesFileError } from './services/route-tables.js';

/**
 * Runs the coordinator as a program, until it is told to stop: prints one JSON line on stdout when it is ready, and
 * returns one of the codes of `EXIT` in platform/lifecycle.ts to end with.
 */
export async function serve(env?: Environment): Promise<number> {
  let log: Logger | undefined;
  try {
    const config = readConfig(env);
    log = createLogger(config.logLevel);
    const unread = unreadVariables(env);
    if (unread.length > 0) log.warn({ variables: unread }, 'nothing reads these variables: are they misspelt?');
    const coordinator = createCoordinator(config, log);
    const stopped = stopOnSignal(coordinator, log);
    await coordinator.start();
    tuneHeap();
    process.stdout.write(`${JSON.stringify(readyLine(config, coordinator))}\n`);
    return (await stopped).length === 0 ? EXIT.stopped : EXIT.stopIncomplete;
  } catch (error) {
    return reportFailure(error, log);
  }
}

function stopOnSignal(coordinator: Coordinator, log: Logger): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    onStopSignal((signal) => {
      log.info({ signal }, 'stopping');
      coordinator.stop().then(resolve, reject);
    });
  });
}

function readyLine(config: Config, coordinator: Coordinator): Record<string, string> {
  const link = coordinator.consoleLink();
  return {
    event: 'ready',
    grpc: coordinator.grpc,
    http: coordinator.http,
    ...(config.tls === null ? {} : { tls: 'on' }),
    ...(config.databaseUrl === null ? { data_dir: config.dataDir } : {}),
    tokens_file: coordinator.tokensFile,
    ...(link === null ? {} : { console: link }),
  };
}

/** Errors for people are said in words; everything else is a bug and is logged with its stack. */
function reportFailure(error: unknown, log: Logger | undefined): number {
  if (error instanceof StartError && error.exitCode === EXIT.stopped) return EXIT.stopped;
  const code =
    error instanceof StartError ? error.exitCode : isMisconfiguration(error) ? EXIT.configuration : EXIT.failed;
  if (code === EXIT.failed) log?.fatal({ err: error }, 'the coordinator failed');
  else process.stderr.write(`writ: ${(error as Error).message}\n`);
  return code;
}

function isMisconfiguration(error: unknown): boolean {
  return [ConfigError, DatabasesFileError, PrincipalsFileError, RoutesFileError, TlsFilesError].some(
    (kind) => error instanceof kind,
  );
}

function isProgram(): boolean {
  const script = process.argv[1];
  return script !== undefined && pathToFileURL(realpathSync(script)).href === import.meta.url;
}

if (isProgram()) {
  process.exit(await serve());
}
