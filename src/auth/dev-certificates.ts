import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonGeneralNames,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { wallClockMicros } from '../platform/clock.js';

/** A certificate and its private key, in PEM form. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** What a certificate is made for. */
export interface CertificateRequest {
  readonly commonName: string;
  readonly use: 'server' | 'client';
  /** Subject alternative names; empty: none. */
  readonly names: JsonGeneralNames;
  readonly days: number;
  /** Days from now at which it begins to be valid; a little before now when absent. */
  readonly beginsInDays?: number;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 86_400_000;
/** Clocks of other machines may be behind. */
const EARLIER_MS = 5 * 60_000;
/** In every subject, so that nobody takes one for more than it is. */
const ORGANISATION = 'Writ development, not for production';

/** Makes a certificate authority for development: whoever has its key can be anybody. */
export async function makeAuthority(days: number): Promise<KeyPair> {
  const keys = await makeKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...lifetime(days),
    serialNumber: serialNumber(),
    name: subject('Writ development CA'),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pemOf(certificate), key: await privatePem(keys) };
}

/** Makes a certificate that the authority vouches for. */
export async function issueCertificate(authority: KeyPair, request: CertificateRequest): Promise<KeyPair> {
  const keys = await makeKeys();
  const issuer = new X509Certificate(authority.cert);
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    PemConverter.decodeFirst(authority.key),
    ALGORITHM,
    false,
    ['sign'],
  );
  const usage = request.use === 'server' ? ExtendedKeyUsage.serverAuth : ExtendedKeyUsage.clientAuth;
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension([usage]),
    await SubjectKeyIdentifierExtension.create(keys.publicKey),
    await AuthorityKeyIdentifierExtension.create(issuer),
  ];
  if (request.names.length > 0) extensions.push(new SubjectAlternativeNameExtension(request.names));
  const certificate = await X509CertificateGenerator.create({
    ...lifetime(request.days, request.beginsInDays),
    serialNumber: serialNumber(),
    subject: subject(request.commonName),
    issuer: issuer.subjectName,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    extensions,
  });
  return { cert: pemOf(certificate), key: await privatePem(keys) };
}

/** The subject of a certificate as a principals file names it. */
export function subjectOf({ cert }: KeyPair): string {
  return new X509Certificate(cert).subject;
}

function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

function subject(commonName: string): Name {
  return new Name([{ CN: [commonName] }, { O: [ORGANISATION] }]);
}

function lifetime(days: number, beginsInDays?: number): { readonly notBefore: Date; readonly notAfter: Date } {
  const now = wallClockMicros() / 1_000;
  const begins = beginsInDays === undefined ? now - EARLIER_MS : now + beginsInDays * DAY_MS;
  return { notBefore: new Date(begins), notAfter: new Date(now + days * DAY_MS) };
}

/** Positive, and of 64 random bits at least. */
function serialNumber(): string {
  return `01${randomBytes(15).toString('hex')}`;
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}

async function privatePem({ privateKey }: webcrypto.CryptoKeyPair): Promise<string> {
  return `${PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', privateKey), PemConverter.PrivateKeyTag)}\n`;
}
