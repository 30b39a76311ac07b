import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CertificateRequest,
  issueCertificate,
  type KeyPair,
  makeAuthority,
} from '../../src/auth/dev-certificates.js';

/** Certificates for tests, each written beside its key. */
export interface TestAuthority {
  readonly pair: KeyPair;
  readonly caFile: string;
  /** Makes and writes a pair; returns its files. */
  issue(name: string, request?: Partial<CertificateRequest>): Promise<{ certFile: string; keyFile: string }>;
}

export async function testAuthority(directory: string, name = 'ca'): Promise<TestAuthority> {
  const pair = await makeAuthority(2);
  const caFile = join(directory, `${name}.pem`);
  await writeFile(caFile, pair.cert);
  return {
    pair,
    caFile,
    async issue(file, request = {}) {
      const made = await issueCertificate(pair, { commonName: file, use: 'client', names: [], days: 1, ...request });
      const [certFile, keyFile] = [join(directory, `${file}.pem`), join(directory, `${file}-key.pem`)];
      await writeFile(keyFile, made.key, { mode: 0o600 });
      await writeFile(certFile, made.cert);
      return { certFile, keyFile };
    },
  };
}

export const LOCAL_NAMES: CertificateRequest['names'] = [
  { type: 'dns', value: 'localhost' },
  { type: 'ip', value: '127.0.0.1' },
];

/** A client's certificate, as gateways tell of it. */
export async function toldCertificate(commonName: string): Promise<{ escaped: string; thumbprint: string }> {
  const { cert } = await issueCertificate(await makeAuthority(1), { commonName, use: 'client', names: [], days: 1 });
  const der = Buffer.from(cert.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  return { escaped: encodeURIComponent(cert), thumbprint: createHash('sha256').update(der).digest('base64url') };
}
