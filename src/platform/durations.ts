const MICROS_PER_UNIT = { ms: 1e3, s: 1e6, m: 60e6, h: 3600e6, d: 86_400e6 } as const;

const PART = /(\d{1,12})(ms|s|m|h|d)/g;

/** Microseconds of a text such as `500ms`, `5m`, `1h30m` or `2d`; null when it is none, or past 2^53 − 1. */
export function parseDuration(text: string): number | null {
  const parts = [...text.matchAll(PART)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== text) return null;
  const micros = parts.reduce(
    (sum, [, count, unit]) => sum + Number(count) * MICROS_PER_UNIT[unit as keyof typeof MICROS_PER_UNIT],
    0,
  );
  return Number.isSafeInteger(micros) ? micros : null;
}
