import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { fileWitness, type Witness } from '../../src/engine/witness.js';
import { eventually } from '../support/coordinator.js';
import { makeTestDirectory } from '../support/global-setup.js';

// What remembers outside the database how far each log went (design: fail-over and restore).

const opened: Witness[] = [];

afterEach(async () => {
  for (const witness of opened.splice(0)) await witness.close();
});

function open(dataDir: string): Witness {
  const witness = fileWitness(dataDir, (error) => {
    throw error;
  });
  opened.push(witness);
  return witness;
}

const head = (revision: number, time = revision) => ({ revision, hash: `hash-${revision}`, time });

async function onDisk(dataDir: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(join(dataDir, 'witness.json'), 'utf8').catch(() => '{}'));
}

test('a head is on disk soon, whatever becomes of the process, and the next one reads it', async () => {
  const dataDir = await makeTestDirectory('witness');
  open(dataDir).note('a', head(7));
  await eventually(
    () => onDisk(dataDir),
    (seen) => 'a' in seen,
    2_000,
  );
  expect(open(dataDir).read('a')).toEqual(head(7));
  expect(open(dataDir).read('b')).toBeNull();
});

test('at shutdown it is on disk before the process ends', async () => {
  const dataDir = await makeTestDirectory('witness');
  const witness = open(dataDir);
  witness.note('a', head(1));
  witness.note('a', head(2));
  await witness.close();
  expect(await onDisk(dataDir)).toEqual({ a: head(2) });
});

test('replicas that share the directory keep what the other has seen later, and what only the other has seen', async () => {
  const dataDir = await makeTestDirectory('witness');
  const [ahead, behind] = [open(dataDir), open(dataDir)];
  ahead.note('a', head(9));
  ahead.note('b', head(3));
  await ahead.flush();
  behind.note('a', head(8));
  behind.note('c', head(1));
  await behind.flush();
  expect(await onDisk(dataDir)).toEqual({ a: head(9), b: head(3), c: head(1) });
});

test('where a lost log begins again at a lower revision, the later time counts', async () => {
  const dataDir = await makeTestDirectory('witness');
  const witness = open(dataDir);
  witness.note('a', head(100, 1_000));
  await witness.flush();
  witness.note('a', head(41, 2_000));
  await witness.flush();
  expect(await onDisk(dataDir)).toEqual({ a: head(41, 2_000) });
});

test('one that cannot be read is none: a new postmaster then counts as lost history', async () => {
  const dataDir = await makeTestDirectory('witness');
  await writeFile(join(dataDir, 'witness.json'), '{"a":{"revis');
  const witness = open(dataDir);
  expect(witness.read('a')).toBeNull();
  witness.note('a', head(1));
  await witness.flush();
  expect(await onDisk(dataDir)).toEqual({ a: head(1) });
});
