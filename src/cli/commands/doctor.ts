import type { Command } from 'commander';
import { type Config, ConfigError, readConfig, unreadVariables } from '../../platform/config.js';
import { action, type Cli } from '../cli.js';
import { databases } from '../doctor/database.js';
import { files } from '../doctor/files.js';
import { type Finding, ok, skipped, warning, wrong } from '../doctor/finding.js';
import { disk, embeddedBinaries, nodeVersion } from '../doctor/machine.js';
import { ports, reachable } from '../doctor/ports.js';
import { redis } from '../doctor/redis.js';
import { EXIT } from '../exit-codes.js';

export function registerDoctor(program: Command, cli: Cli): void {
  const doctor = program
    .command('doctor')
    .description('look at what a coordinator needs here: Node, settings, ports, files, binaries, disk, database, Redis')
    .addHelpText(
      'after',
      `\nLooks at the settings that \`writ serve\` would take (WRIT_* variables). Ends with ${EXIT.verification} if something is wrong.`,
    );
  action(doctor, cli, async ({ out, options }) => {
    const endpoint = options.endpoint ?? cli.config.endpoint;
    const findings = [...(await examine(cli)), await reachable(endpoint)];
    const wrong = findings.some(({ verdict }) => verdict === 'problem');
    out.result(
      () => ({ ok: !wrong, findings }),
      () => {
        const styles = { ok: 'green', warning: 'yellow', problem: 'red', skipped: 'dim' } as const;
        out.table(
          ['WHAT', '', 'FOUND'],
          findings.map(({ what, verdict, text }) => [what, { text: verdict, style: styles[verdict] }, text]),
        );
      },
    );
    return wrong ? EXIT.verification : EXIT.ok;
  });
}

async function examine(cli: Cli): Promise<Finding[]> {
  const findings: Finding[] = [nodeVersion(process.versions.node)];
  let config: Config;
  try {
    config = readConfig(cli.env);
    findings.push(settings(unreadVariables(cli.env)));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [...findings, ...error.problems.map((problem) => wrong('settings', problem))];
  }
  const found = await Promise.all([
    ports(config),
    files(config),
    disk(config.dataDir),
    config.databaseUrl === null ? embeddedBinaries() : skipped('embedded Postgres', 'WRIT_DATABASE_URL is set'),
    databases(config),
    redis(config),
  ]);
  return [...findings, ...found.flat()];
}

function settings(unread: readonly string[]): Finding {
  return unread.length === 0
    ? ok('settings', 'every WRIT_* variable can be read')
    : warning('settings', `nothing reads ${unread.join(', ')}: misspelt? The other WRIT_* variables can be read`);
}
