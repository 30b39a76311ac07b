import { type DescMessage, fromBinary, toBinary } from '@bufbuild/protobuf';
import { StructSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { Fault } from '../../src/domain/fault.js';
import { AuditServiceService } from '../../src/gen/writ/v1/audit_service.js';
import { ConflictMapServiceService } from '../../src/gen/writ/v1/conflict_map_service.js';
import { FenceServiceService } from '../../src/gen/writ/v1/fence_service.js';
import { LeaseServiceService } from '../../src/gen/writ/v1/lease_service.js';
import { NamespaceServiceService } from '../../src/gen/writ/v1/namespace_service.js';
import { RunServiceService } from '../../src/gen/writ/v1/run_service.js';
import { checkMessage } from '../../src/transports/grpc/check-message.js';
import { readContract } from '../../src/transports/grpc/contract.js';
import { MessageShapes } from '../../src/transports/grpc/message-shape.js';
import { bytes, damaged, embedded, number, randomMessage, seeded, text } from '../support/wire-bytes.js';

const { requests: REQUESTS } = readContract();
const SHAPES = new MessageShapes();
const BOUNDS = { maxFields: 1000, setting: 'WRIT_MAX_ENTRIES' };

const METHODS = [
  AuditServiceService,
  ConflictMapServiceService,
  FenceServiceService,
  LeaseServiceService,
  NamespaceServiceService,
  RunServiceService,
].flatMap((service) => Object.values(service));

function requestOf(path: string): DescMessage {
  const message = REQUESTS.get(path);
  if (message === undefined) throw new Error(`no ${path}`);
  return message;
}

/** `ok`, or the reason with the fields, else the message. */
function verdict(path: string, message: Uint8Array, maxFields = BOUNDS.maxFields): string {
  try {
    checkMessage(message, SHAPES.of(requestOf(path)), { ...BOUNDS, maxFields });
    return 'ok';
  } catch (error) {
    if (!(error instanceof Fault) || error.faultClass !== 'invalid_argument') throw error;
    const fields = error.details.violations?.map(({ field, description }) => `${field} ${description}`).join();
    return `${error.reason}: ${fields ?? error.message}`;
  }
}

const ACQUIRE = '/writ.v1.LeaseService/AcquireWriteSet';
const RELEASE = '/writ.v1.LeaseService/ReleaseLease';
const LIST = '/writ.v1.LeaseService/ListLeases';

const TWICE = 'is given twice, or together with another of its oneof';

describe('the bytes of a request', () => {
  it.each([
    ['nothing at all', bytes('')],
    [
      'unknown fields of every kind',
      Buffer.concat([number(900, 1), text(901, 'x'), bytes('a538 00000000 a138 0000000000000000')]),
    ],
    ['text beyond ASCII', text(2, 'Grüße 🦉')],
    ['long text beyond ASCII', text(2, 'ü'.repeat(200))],
    ['an empty map entry', embedded(4, embedded(2))],
    ['a number of ten bytes', embedded(5, number(2, -1))],
  ])('may be %s', (_, message) => {
    expect(verdict(ACQUIRE, message)).toBe('ok');
  });

  it('may have numbers of a list one by one and packed', () => {
    expect(verdict(LIST, Buffer.concat([number(4, 1), number(4, 2), text(4, bytes('01 02 03'))]))).toBe('ok');
    expect(verdict(LIST, text(4, bytes('01 ff')))).toMatch(/MALFORMED/);
  });

  it.each([
    ['a lone byte', 'fa ff', text(2, bytes('faff'))],
    ['half of a surrogate pair', 'ed a0 80', text(2, bytes('eda080'))],
    ['an overlong zero', 'c0 80', text(2, bytes('c080'))],
    ['a cut character', 'c3', text(2, bytes('c3'))],
    ['a code point beyond the last', 'f4 90 80 80', text(2, bytes('f4908080'))],
    ['a bad byte in long text', 'ff', text(2, Buffer.concat([Buffer.alloc(200, 'a'), bytes('ff')]))],
  ])('may not hold text with %s (%s)', (_, _hex, message) => {
    expect(verdict(ACQUIRE, message)).toBe('INVALID_ARGUMENT: run_id is not valid UTF-8');
  });

  it('are refused with the whole path of the field', () => {
    const bad = text(4, bytes('ff'));
    const entry = embedded(3, text(1, 'a'), text(4, 'x'), bad);
    expect(verdict(ACQUIRE, Buffer.concat([embedded(3), entry]))).toBe(
      'INVALID_ARGUMENT: entries[1].actions[1] is not valid UTF-8',
    );
    expect(verdict('/writ.v1.LeaseService/PreviewWriteSet', embedded(1, embedded(3, bad)))).toBe(
      'INVALID_ARGUMENT: request.entries[0].actions[0] is not valid UTF-8',
    );
    expect(verdict(ACQUIRE, embedded(4, embedded(2, text(2, bytes('ff')))))).toBe(
      'INVALID_ARGUMENT: task.parameters[0].value is not valid UTF-8',
    );
  });

  it('may not name a parameter that an object cannot hold', () => {
    expect(verdict(ACQUIRE, embedded(4, embedded(2, text(1, '__proto__'), text(2, 'x'))))).toBe(
      'INVALID_ARGUMENT: task.parameters[0].key must not be __proto__',
    );
  });

  it('may give a field once, and one field of a oneof', () => {
    expect(verdict(ACQUIRE, Buffer.concat([text(2, 'a'), text(2, 'b')]))).toBe(`INVALID_ARGUMENT: run_id ${TWICE}`);
    expect(verdict(ACQUIRE, Buffer.concat([embedded(5), embedded(5)]))).toBe(`INVALID_ARGUMENT: ttl ${TWICE}`);
    expect(verdict(RELEASE, Buffer.concat([text(3, 'a'), text(4, 'b')]))).toBe(
      `INVALID_ARGUMENT: acquire_key ${TWICE}`,
    );
  });

  it.each([
    ['end within a tag', 'ff'],
    ['end within a number', '28 ff'],
    ['end within text', '0a 05 61'],
    ['end within a fixed number', 'a5 38 00'],
    ['have a number that does not end', `f0 38 ${'ff'.repeat(11)}`],
    ['have a tag of more than 32 bits', 'ff ff ff ff ff 01'],
    ['have a length of more than 32 bits', '0a 81 80 80 80 10 61'],
    ['have field number 0', '00 0a 01 61'],
    ['have a group', '0b 0c'],
    ['have an end of a group', '0c'],
    ['have wire type 6', '0e 00'],
    ['have a number where there should be text', '08 01'],
    ['have text where there should be a number', embedded(5, text(1, '1')).toString('hex')],
    ['have a message that reaches beyond the one it is in', '1a 03 0a 05 61 62 63 64 65'],
    ['have a message that ends within a field', '1a 02 0a 05 61 62 63 64 65'],
  ])('are malformed when they %s', (_, hex) => {
    expect(verdict(ACQUIRE, bytes(hex))).toMatch(
      /^MALFORMED_MESSAGE: the bytes are no writ\.v1\.AcquireWriteSetRequest: ./,
    );
  });

  it('may have so many fields and no more, whatever they are', () => {
    const named = /^INVALID_ARGUMENT: (\S+) a request may have at most 10 fields.*WRIT_MAX_ENTRIES/;
    const refusedAt = (path: string, message: Buffer): string | undefined =>
      named.exec(verdict(path, message, 10))?.[1];
    const times = (count: number, part: Buffer): Buffer => Buffer.concat(Array(count).fill(part));
    expect(verdict(ACQUIRE, times(10, embedded(3)), 10)).toBe('ok');
    expect(refusedAt(ACQUIRE, times(11, embedded(3)))).toBe('entries');
    expect(refusedAt(ACQUIRE, embedded(3, times(10, text(4, ''))))).toBe('entries[0].actions');
    expect(refusedAt(LIST, text(4, Buffer.alloc(10, 1)))).toBe('states');
    expect(verdict(ACQUIRE, times(11, number(900, 1)), 10)).toMatch(
      /^INVALID_ARGUMENT: an unknown field a request may/,
    );
  });

  it('may not nest for ever', () => {
    const shape = SHAPES.of(StructSchema);
    // Struct.fields["k"].struct_value.fields["k"]…
    const nested = (levels: number): Buffer =>
      levels === 0 ? bytes('') : embedded(1, text(1, 'k'), embedded(2, embedded(5, nested(levels - 1))));
    expect(() => checkMessage(nested(10), shape, BOUNDS)).not.toThrow();
    expect(() => checkMessage(nested(11), shape, BOUNDS)).toThrow(/more than 32 messages are inside one another/);
    expect(() => checkMessage(nested(2000), shape, { ...BOUNDS, maxFields: 1e6 })).toThrow(Fault);
  });
});

describe('every method', () => {
  it.each(METHODS.map((method) => [method.path, method] as const))('%s', (path, method) => {
    const request = requestOf(path);
    const decode = method.requestDeserialize as (message: Buffer) => unknown;
    const encode = method.requestSerialize as (value: unknown) => Buffer;
    const random = seeded(METHODS.indexOf(method) + 1);
    let passed = 0;
    for (let round = 0; round < 400; round += 1) {
      const whole = randomMessage(request, random);
      const message = round % 4 === 0 ? whole : damaged(whole, random);
      const found = verdict(path, message);
      if (round % 4 === 0) expect(['ok', expect.stringContaining('__proto__')]).toContainEqual(found);
      if (found !== 'ok') continue;
      passed += 1;
      // An independent and strict reader finds the same in it as the generated code does.
      const known = toBinary(request, fromBinary(request, message), { writeUnknownFields: false });
      const again = toBinary(request, fromBinary(request, encode(decode(message))), { writeUnknownFields: false });
      expect(Buffer.from(again)).toEqual(Buffer.from(known));
    }
    expect(passed).toBeGreaterThan(0);
  });
});
