import { type DescMessage, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { contractFiles, contractTypes } from '../../contract/descriptors.js';

/** The contract as data. */
export interface Contract {
  /** The encoded file descriptors, as reflection serves them. */
  readonly files: readonly Buffer[];
  /** The request of every RPC, by its path such as `/writ.v1.FenceService/CheckFence`. */
  readonly requests: ReadonlyMap<string, DescMessage>;
}

export function readContract(): Contract {
  const methods = [...contractTypes()].flatMap((type) => (type.kind === 'service' ? type.methods : []));
  return {
    files: contractFiles().file.map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file))),
    requests: new Map(methods.map(({ parent, name, input }) => [`/${parent.typeName}/${name}`, input])),
  };
}
