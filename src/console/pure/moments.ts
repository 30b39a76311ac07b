/** Moments and lengths of time: proto3 JSON in, words out. */

/** Milliseconds since 1970 of a moment in RFC 3339; null: there is none. */
export function millisOf(moment: string | undefined): number | null {
  if (moment === undefined || moment === '') return null;
  const ms = Date.parse(moment);
  return Number.isNaN(ms) ? null : ms;
}

const MOMENT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;

/** Microseconds since 1970, exact, as the log's hashes have them; null: it is no moment of the coordinator's. */
export function microsOf(moment: string): number | null {
  const [, seconds, fraction = ''] = MOMENT.exec(moment) ?? [];
  if (seconds === undefined) return null;
  const micros = Date.parse(`${seconds}Z`) * 1_000 + Number(fraction.padEnd(6, '0').slice(0, 6));
  return Number.isSafeInteger(micros) ? micros : null;
}

/** Milliseconds of a length such as `12.500s`; null: there is none. */
export function lengthMs(length: string | undefined): number | null {
  const [, seconds] = /^(-?\d+(?:\.\d+)?)s$/.exec(length ?? '') ?? [];
  return seconds === undefined ? null : Number(seconds) * 1_000;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const;

/** A length in its two largest units: `3 m 20 s`, `2 d 4 h`. Less than a second is `0 s`. */
export function inWords(ms: number): string {
  let rest = Math.max(0, Math.floor(ms / 1_000));
  const parts: string[] = [];
  for (const [name, seconds] of UNITS) {
    const count = Math.floor(rest / seconds);
    rest -= count * seconds;
    if (count === 0 && parts.length === 0 && seconds > 1) continue;
    if (count > 0 || parts.length === 0) parts.push(`${count} ${name}`);
    if (parts.length === 2 || (parts.length === 1 && count === 0)) break;
  }
  return parts.join(' ');
}

/** How long ago, or how far ahead. */
export function ago(thenMs: number, nowMs: number): string {
  const ms = nowMs - thenMs;
  if (Math.abs(ms) < 1_000) return 'now';
  return ms >= 0 ? `${inWords(ms)} ago` : `in ${inWords(-ms)}`;
}

/** Nothing within a second of being over is shown as having time left. */
export type Urgency = 'over' | 'now' | 'soon' | 'calm';

const NOW_MS = 5_000;
const SOON_MS = 15_000;

/** How near the end is: what is in jeopardy stands out. */
export function urgencyOf(leftMs: number): Urgency {
  if (leftMs <= 0) return 'over';
  if (leftMs <= NOW_MS) return 'now';
  return leftMs <= SOON_MS ? 'soon' : 'calm';
}
