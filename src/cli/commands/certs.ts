import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { wallClockMicros } from '../../platform/clock.js';
import { repeated, wholeNumber } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';

interface CertsOptions {
  readonly dir: string;
  readonly host?: readonly string[];
  readonly client?: readonly string[];
  readonly days: number;
  readonly force?: boolean;
}

/** Longer than any certificate that it vouches for. */
const AUTHORITY_DAYS = 366;
const MAX_DAYS = 365;

/** A certificate with its key, and what there is to say about it. */
interface Made {
  readonly name: string;
  readonly files: readonly [cert: string, key: string];
  readonly known: string;
}

const SPIFFE_ID = /^spiffe:\/\/[a-z0-9._-]{1,255}(\/[A-Za-z0-9._-]+)*$/;
const HOST = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;
const COMMON_NAME = /^[\x21-\x7e]{1,64}$/;

export function registerCerts(program: Command, cli: Cli): void {
  const certs = program
    .command('certs')
    .description('make certificates for development: an authority, a server certificate, client certificates')
    .option('--dir <directory>', 'where to put them', './certs')
    .option('--host <name>', 'name or address of the server; repeatable (default: localhost, 127.0.0.1, ::1)', repeated)
    .option('--client <id>', 'SPIFFE id or common name of a client; repeatable', repeated)
    .option('--days <number>', 'how long they are valid, 1 to 365', wholeNumber(1), 30)
    .option('--force', 'replace certificates that are there; the authority is kept')
    .addHelpText(
      'after',
      '\nFor development only: whoever has ca-key.pem can be anybody. An authority that is there signs the new ones.',
    );
  action<CertsOptions>(certs, cli, async ({ out, options }) => {
    if (options.days > MAX_DAYS) throw new CliError(EXIT.usage, `--days must be at most ${MAX_DAYS}.`);
    const wanted = toRequests(options);
    const dir = resolve(options.dir);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    if (options.force !== true) await refuseToOverwrite(dir, wanted);
    const { issueCertificate, makeAuthority, subjectOf } = await import('../../auth/dev-certificates.js');
    const found = await readPair(dir, 'ca');
    const authority = found ?? (await makeAuthority(AUTHORITY_DAYS));
    if (found === null) await writePair(dir, 'ca', authority);
    const made: Made[] = [{ name: 'ca', files: filesOf(dir, 'ca'), known: 'the authority' }];
    for (const { file, known, ...request } of wanted) {
      const pair = await issueCertificate(authority, { ...request, days: options.days }).catch(unfitAuthority(dir));
      const subject =
        request.use === 'client' && known === '' ? `{"subject": ${JSON.stringify(subjectOf(pair))}}` : known;
      made.push({ name: file, files: await writePair(dir, file, pair), known: subject });
    }
    const told = { directory: dir, days: options.days, forDevelopmentOnly: true, certificates: made };
    out.result(
      () => told,
      () => {
        out.table(
          ['FILE', 'KEY', 'KNOWN AS'],
          made.map(({ files: [cert, key], known }) => [cert, key, known]),
        );
        out.line();
        out.line('For development only: whoever has ca-key.pem can be anybody.');
        out.line();
        out.line(
          `Server:  WRIT_TLS_CERT_FILE=${join(dir, 'server.pem')} WRIT_TLS_KEY_FILE=${join(dir, 'server-key.pem')}`,
        );
        out.line(`         WRIT_TLS_CLIENT_CA_FILE=${join(dir, 'ca.pem')}  # to be shown client certificates`);
        out.line(`Clients: WRIT_ENDPOINT=https://localhost:7410 WRIT_CA_FILE=${join(dir, 'ca.pem')}`);
        if (options.client !== undefined) {
          out.line('         WRIT_CLIENT_CERT_FILE=… WRIT_CLIENT_KEY_FILE=…');
          out.line('Give "certificates" of a principal in WRIT_TOKENS_FILE what is in the last column.');
        }
      },
    );
    return EXIT.ok;
  });
}

interface Wanted {
  readonly file: string;
  readonly commonName: string;
  readonly use: 'server' | 'client';
  readonly names: { readonly type: 'dns' | 'ip' | 'url'; readonly value: string }[];
  readonly known: string;
}

function toRequests({ host = [], client = [] }: CertsOptions): Wanted[] {
  const hosts = host.length === 0 ? ['localhost', '127.0.0.1', '::1'] : host;
  const wrong = hosts.find((name) => isIP(name) === 0 && !HOST.test(name));
  if (wrong !== undefined) throw new CliError(EXIT.usage, `${JSON.stringify(wrong)} is no host name and no address.`);
  const names = hosts.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value }));
  const server: Wanted = { file: 'server', commonName: 'Writ server', use: 'server', names, known: hosts.join(', ') };
  const wanted = [server, ...client.map(toClient)];
  const files = wanted.map(({ file }) => file);
  const twice = files.find((file, index) => files.indexOf(file) < index);
  if (twice !== undefined) throw new CliError(EXIT.usage, `Two clients would both be written to ${twice}.pem.`);
  return wanted;
}

function toClient(id: string): Wanted {
  const spiffe = SPIFFE_ID.test(id);
  if (!spiffe && (!COMMON_NAME.test(id) || /^\w+:\/\//.test(id)))
    throw new CliError(
      EXIT.usage,
      `${JSON.stringify(id)} is neither a SPIFFE id nor a common name of 1 to 64 characters.`,
    );
  const file = `client-${id.replace(/^spiffe:\/\//, '').replace(/[^A-Za-z0-9._-]+/g, '-')}`;
  if (!spiffe) return { file, commonName: id, use: 'client', names: [], known: '' };
  const known = `{"spiffe_id": ${JSON.stringify(id)}}`;
  return { file, commonName: 'Writ client', use: 'client', names: [{ type: 'url', value: id }], known };
}

async function refuseToOverwrite(dir: string, wanted: readonly Wanted[]): Promise<void> {
  for (const { file } of wanted) {
    const path = join(dir, `${file}.pem`);
    if (await exists(path)) throw new CliError(EXIT.refused, `${path} is there already.`, 'Replace it with --force.');
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

/** A pair that is there; null: none is. Half of one is refused, as a new one would make the other half worthless. */
async function readPair(dir: string, name: string): Promise<{ cert: string; key: string } | null> {
  const [cert, key] = await Promise.all(filesOf(dir, name).map((path) => readFile(path, 'utf8').catch(() => null)));
  if (typeof cert === 'string' && typeof key === 'string') {
    if (hasExpired(cert))
      throw new CliError(EXIT.refused, `The authority in ${dir} has expired.`, 'Use a new directory.');
    return { cert, key };
  }
  if ((await Promise.all(filesOf(dir, name).map(exists))).some(Boolean))
    throw new CliError(EXIT.refused, `${dir} has no whole authority: ca.pem and ca-key.pem go together.`);
  return null;
}

function hasExpired(pem: string): boolean {
  try {
    return Date.parse(new X509Certificate(pem).validTo) * 1_000 < wallClockMicros();
  } catch {
    throw new CliError(EXIT.refused, 'ca.pem holds no certificate in PEM form.');
  }
}

/** Moved into place with their content, the key first: nobody reads half of one. */
async function writePair(dir: string, name: string, pair: { cert: string; key: string }): Promise<[string, string]> {
  const [cert, key] = filesOf(dir, name);
  await writeWhole(key, pair.key, 0o600);
  await writeWhole(cert, pair.cert, 0o644);
  return [cert, key];
}

function filesOf(dir: string, name: string): [string, string] {
  return [join(dir, `${name}.pem`), join(dir, `${name}-key.pem`)];
}

async function writeWhole(path: string, content: string, mode: number): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { force: true });
  await writeFile(draft, content, { mode, flag: 'wx' });
  await rename(draft, path);
}

function unfitAuthority(dir: string): (error: unknown) => never {
  return (error) => {
    throw new CliError(EXIT.refused, `${join(dir, 'ca-key.pem')} cannot sign: ${(error as Error).message}`);
  };
}
