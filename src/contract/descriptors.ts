import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { DescMessage, FileRegistry } from '@bufbuild/protobuf';
import type { FileDescriptorSet } from '@bufbuild/protobuf/wkt';

/** The contract as data. The library is loaded by whoever asks first: what only prints text starts sooner without it. */
const require = createRequire(import.meta.url);
const wellKnown = () => require('@bufbuild/protobuf/wkt') as typeof import('@bufbuild/protobuf/wkt');

export const library = () => require('@bufbuild/protobuf') as typeof import('@bufbuild/protobuf');

let files: FileDescriptorSet | undefined;
let types: FileRegistry | undefined;

/** What buf makes of the same files as the generated code; it lies beside that, in src and in dist. */
export function contractFiles(): FileDescriptorSet {
  files ??= library().fromBinary(
    wellKnown().FileDescriptorSetSchema,
    readFileSync(new URL('../gen/descriptor.binpb', import.meta.url)),
  );
  return files;
}

/** Its services and messages by name. */
export function contractTypes(): FileRegistry {
  types ??= library().createFileRegistry(contractFiles());
  return types;
}

/** Throws where the contract has no such message. */
export function messageNamed(name: string): DescMessage {
  const message = contractTypes().getMessage(name);
  if (message === undefined) throw new TypeError(`the contract has no message ${name}`);
  return message;
}
