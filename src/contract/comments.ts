import type { DescriptorProto, EnumDescriptorProto, FileDescriptorProto } from '@bufbuild/protobuf/wkt';
import { contractFiles } from './descriptors.js';

/** What the contract's comments say, for whoever documents it in another form. */

/** Numbers of fields of descriptors, by which source locations name what they are about. */
const MESSAGES = 4;
const ENUMS = 5;
const SERVICES = 6;
const FIELDS = 2;
const NESTED_MESSAGES = 3;
const NESTED_ENUMS = 4;
const ENUM_VALUES = 2;
const METHODS = 2;

let comments: ReadonlyMap<string, string> | undefined;

/**
 * The comment before a message, field, enum, value, service or method, by its full name such as `writ.v1.Run.run_id`;
 * a value's is within its enum. One line; empty: there is none.
 */
export function commentOn(name: string): string {
  comments ??= new Map(contractFiles().file.flatMap(commentsIn));
  return comments.get(name) ?? '';
}

type Commented = [name: string, comment: string];

function commentsIn(file: FileDescriptorProto): Commented[] {
  const at = new Map(
    file.sourceCodeInfo?.location.map(({ path, leadingComments }) => [path.join('.'), leadingComments]) ?? [],
  );
  const told = (name: string, ...path: (number | string)[]): Commented => [name, oneLine(at.get(path.join('.')) ?? '')];
  const ofEnum = (parent: string, type: EnumDescriptorProto, path: string): Commented[] => {
    const name = `${parent}.${type.name}`;
    return [
      told(name, path),
      ...type.value.map((value, index) => told(`${name}.${value.name}`, path, ENUM_VALUES, index)),
    ];
  };
  const ofMessage = (parent: string, type: DescriptorProto, path: string): Commented[] => {
    const name = `${parent}.${type.name}`;
    return [
      told(name, path),
      ...type.field.map((field, index) => told(`${name}.${field.name}`, path, FIELDS, index)),
      ...type.nestedType.flatMap((inner, index) => ofMessage(name, inner, `${path}.${NESTED_MESSAGES}.${index}`)),
      ...type.enumType.flatMap((inner, index) => ofEnum(name, inner, `${path}.${NESTED_ENUMS}.${index}`)),
    ];
  };
  return [
    ...file.messageType.flatMap((type, index) => ofMessage(file.package, type, `${MESSAGES}.${index}`)),
    ...file.enumType.flatMap((type, index) => ofEnum(file.package, type, `${ENUMS}.${index}`)),
    ...file.service.flatMap((service, index) =>
      service.method.map((method, at) =>
        told(`${file.package}.${service.name}.${method.name}`, SERVICES, index, METHODS, at),
      ),
    ),
  ];
}

function oneLine(comment: string): string {
  return comment.trim().replace(/\s*\n\s*/g, ' ');
}
