import { lchown, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { absent } from './errors.js';

/** An account of the operating system. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
}

/**
 * Whom root runs the server as: the owner of an existing pgdata, so that a start as root does not take it away from its
 * user; else a system account.
 */
export async function chooseAccount(pgdata: string): Promise<Account> {
  const existing = await stat(pgdata).catch(absent);
  if (existing !== undefined && existing.uid !== 0) {
    return { uid: existing.uid, gid: existing.gid, name: await accountName(existing.uid) };
  }
  const accounts = await systemAccounts();
  const account = accounts.find((a) => a.name === 'postgres') ?? accounts.find((a) => a.name === 'nobody');
  const chosen = account ?? { uid: 65_534, gid: 65_534, name: 'uid 65534' };
  // Copied back by root, say; nothing can run in it as it is.
  if (existing !== undefined) await chownTree(pgdata, chosen);
  return chosen;
}

export async function accountName(uid: number): Promise<string> {
  return (await systemAccounts()).find((account) => account.uid === uid)?.name ?? `uid ${uid}`;
}

async function systemAccounts(): Promise<Account[]> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  return passwd.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

async function chownTree(path: string, account: Account): Promise<void> {
  await lchown(path, account.uid, account.gid);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) await chownTree(child, account);
    else await lchown(child, account.uid, account.gid);
  }
}
