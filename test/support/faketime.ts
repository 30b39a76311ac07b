import { existsSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';

/** Debian's libfaketime: a process with a wall clock that tests set. */
const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';

/** Why such a process cannot be had; empty: it can. */
export const faketimeMissing = existsSync(LIBRARY)
  ? ''
  : `${LIBRARY} is missing; on Debian: apt-get install libfaketime`;

/** A wall clock that is read from a file at every look, so that it can be stepped while its process runs. */
export interface SteppedClock {
  /** For the process that is to live by it. Its monotonic clock stays true. */
  readonly env: Readonly<Record<string, string>>;
  /** So many seconds off the true time from now on. */
  set(seconds: number): Promise<void>;
}

export async function makeSteppedClock(file: string, seconds = 0): Promise<SteppedClock> {
  const set = async (offset: number): Promise<void> => {
    await writeFile(`${file}.new`, `${offset < 0 ? '-' : '+'}${Math.abs(offset)}`);
    await rename(`${file}.new`, file);
  };
  await set(seconds);
  return {
    set,
    env: {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
  };
}
