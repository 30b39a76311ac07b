import { readFileSync } from 'node:fs';
import { createFileRegistry, type DescMessage, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

/** The contract as data. */
export interface Contract {
  /** The encoded file descriptors, as reflection serves them. */
  readonly files: readonly Buffer[];
  /** The request of every RPC, by its path such as `/writ.v1.FenceService/CheckFence`. */
  readonly requests: ReadonlyMap<string, DescMessage>;
}

/** Reads the descriptor set that buf makes of the same files as the generated code; it lies beside it, in src and in dist. */
export function readContract(): Contract {
  const bytes = readFileSync(new URL('../../gen/descriptor.binpb', import.meta.url));
  const set = fromBinary(FileDescriptorSetSchema, bytes);
  const methods = [...createFileRegistry(set)].flatMap((type) => (type.kind === 'service' ? type.methods : []));
  return {
    files: set.file.map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file))),
    requests: new Map(methods.map(({ parent, name, input }) => [`/${parent.typeName}/${name}`, input])),
  };
}
