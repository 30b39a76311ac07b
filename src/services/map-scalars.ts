import { type Micros, SECOND } from '../domain/time.js';
import { parseDuration } from '../platform/durations.js';

const MAX_DURATION: Micros = 366 * 86_400 * SECOND;

/** Reads a duration of the map; null: it is none, is zero, or is longer than 366 days. */
export function parseMapDuration(text: string): Micros | null {
  const micros = parseDuration(text);
  return micros !== null && micros > 0 && micros <= MAX_DURATION ? micros : null;
}

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** Reads a time of RFC 3339, exact to the microsecond (a Date would lose them); null: it is none. */
export function parseTimestamp(text: string): Micros | null {
  const parts = RFC3339.exec(text);
  if (parts === null) return null;
  const number = (index: number): number => Number(parts[index] ?? 0);
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (
    year < 1970 ||
    month < 1 ||
    month > 12 ||
    day < 1 ||
    day > daysIn(year, month) ||
    hour > 23 ||
    minute > 59 ||
    second > 59
  )
    return null;
  if (number(9) > 23 || number(10) > 59) return null;
  const offset = (parts[8] === '-' ? -1 : 1) * (number(9) * 60 + number(10));
  const fraction = Number((parts[7] ?? '').padEnd(6, '0').slice(0, 6));
  const minutes = daysSince1970(year, month, day) * 1_440 + hour * 60 + minute - offset;
  const time = (minutes * 60 + second) * SECOND + fraction;
  return Number.isSafeInteger(time) && time >= 0 ? time : null;
}

const isLeap = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;

function daysIn(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function daysSince1970(year: number, month: number, day: number): number {
  const before = year - 1;
  const leaps = (y: number): number => Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
  let days = (year - 1970) * 365 + leaps(before) - leaps(1969);
  for (let m = 1; m < month; m += 1) days += daysIn(year, m);
  return days + day - 1;
}
