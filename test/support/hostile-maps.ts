/** Documents that cost what they can, within the size of a conflict map. */

const LEASED = 'actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } }';

const lines = (count: number, line: (number: number) => string): string =>
  Array.from({ length: count }, (_, n) => line(n)).join('\n');

const head = (...kinds: string[]): string =>
  `version: 1\nkinds:\n${kinds.map((pattern) => `  - { pattern: "${pattern}", ${LEASED} }`).join('\n')}\n`;

/** 100,000 anchors and aliases. */
export const woven = `version: 1\nkinds: [ ${lines(50_000, (n) => `&a${n} x, *a${n},`)} ]\n`;

/** Brackets in brackets. */
export const nested = `version: ${'['.repeat(400_000)}`;

/** Lists in lists, on one line. */
export const stacked = `version:\n  ${'- '.repeat(400_000)}x\n`;

/** More values than a map may have. */
export const crowded = `version: 1\nkinds: [${'x,'.repeat(300_000)}x]\n`;

/** What ten levels of ten aliases stand for. */
export const bomb = `version: 1\nkinds:\n  - &a0 [x, x]\n${lines(10, (n) => `  - &a${n + 1} [${`*a${n}, `.repeat(10)}x]`)}\n`;

/** Aliases of one shape that part only at their ends. */
export const alike = `${head('doc/{id}')}aliases:\n${lines(
  850,
  (n) =>
    `  - { from: "${'x'.repeat(8)}{a}${lines(180, (m) => `b{c${m}}`).replaceAll('\n', '')}!${String(n).padStart(4, '0')}", to: "doc/{a}" }`,
)}\n`;

/** Every kind extends what all profiles together say. */
export const inherited = `version: 1\nprofiles:\n${lines(
  1_000,
  (n) =>
    `  p${n}: { ${n === 0 ? '' : `extends: p${n - 1}, `}actions: { a${n}: { access: write, change_class: derived } } }`,
)}\nkinds:\n${lines(5_000, (n) => `  - { pattern: "k${n}/{x}", extends: p999 }`)}\n`;

/** Names that are nowhere, each compared with all there are. */
export const misspelt = `version: 1\nresolvers:\n${lines(1_000, (n) => `  resolver-${n}: {}`)}\nkinds:\n${lines(
  9_000,
  (n) => `  - { pattern: "k${n}/{x}", actions: { set: { resolver: resolvr-${n} } } }`,
)}\n`;

/** Kinds that all mean the same. */
export const repeated = `version: 1\nkinds:\n${lines(10_000, (n) => `  - { pattern: "k/{x${n}}" }`)}\n`;

/** Rules that each lead to many of the others. */
export const entangled = (tail = ''): string =>
  `${head('{kind}/{x}')}implies:\n${lines(
    400,
    (n) =>
      `  - { when: { pattern: "r${n}/{x}" }, touches: [ ${lines(45, (m) => `{ resource: "r${(n * 7 + m * 11) % 400}/{x}", access: write }`).replaceAll('\n', ', ')} ] }`,
  )}\n${tail}`;

/** Assertions that each follow all of them. */
export const asserted = entangled(
  `assertions:\n${lines(
    1_000,
    (n) =>
      `  - { conflict: true, a: { entries: [ { resource: "r${n % 400}/a${n}", access: write } ] }, b: { entries: [ { resource: "r0/a${n}", access: write } ] } }`,
  )}\n`,
);

/** As many tasks as a map may have, whose parameters can meet in many ways. */
export const tasks = `${head('{kind}/{x}', 'a/{x}', 'b/{x}/{y}')}conflicts:\n${lines(
  200,
  (n) => `  - { between: ["t${n}/{x}", "t${(n * 7 + 1) % 256}/{x}"] }`,
)}\ntasks:\n${lines(
  256,
  (n) =>
    `  t${n}: { params: [x, y, z], entries: [ { resource: "t${n}/{x}", access: write }, { resource: "b/{x}/{y}", access: read }, { resource: "a/{z}", access: write } ] }`,
)}\n`;
