/** `npm run faults`: every scenario once; `-- --scenario F2 --seed N`: one; `-- --minutes N [--seed S]`: the random mix. */
export interface Options {
  /** Empty: all. */
  readonly scenarios: readonly string[];
  /** Null: the random mix is not run. */
  readonly minutes: number | null;
  readonly seed: number;
  /** Each scenario so often, with seeds one after another. */
  readonly times: number;
  /** As many of everything as the catalogue says, which takes long. */
  readonly full: boolean;
  readonly help: boolean;
}

export const USAGE = `npm run faults -- [options]

  (nothing)            every scenario of the catalogue once, and a table
  --scenario F2,F7     only these
  --times N            each so often, with the seeds S, S+1, … (default 1)
  --minutes N          the random mix instead, in rounds of up to a minute (0.1 to 1440)
  --seed S             what is drawn, 0 to 4294967295 (default: by chance, and printed)
  --full               as many of everything as the catalogue says; without it as many as two cores take in about a minute
  --help`;

export class UsageError extends Error {}

export function readOptions(args: readonly string[], draw: () => number): Options {
  const given = new Map<string, string>();
  for (let at = 0; at < args.length; at += 1) {
    const name = args[at] ?? '';
    if (name === '--full' || name === '--help') given.set(name, 'yes');
    else if (['--scenario', '--times', '--minutes', '--seed'].includes(name)) given.set(name, args[++at] ?? '');
    else throw new UsageError(`there is no option ${name}`);
  }
  if (given.has('--minutes') && given.has('--scenario'))
    throw new UsageError('--minutes is the random mix of everything: it takes no --scenario');
  const number = (name: string, least: number, most: number, whole: boolean): number | null => {
    const text = given.get(name);
    if (text === undefined) return null;
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most) || (whole && !Number.isInteger(value)))
      throw new UsageError(
        `${name} must be ${whole ? 'a whole number' : 'a number'} from ${least} to ${most}, not ${text || 'nothing'}`,
      );
    return value;
  };
  return {
    scenarios: (given.get('--scenario') ?? '').split(',').filter((name) => name !== ''),
    minutes: number('--minutes', 0.1, 1_440, false),
    seed: number('--seed', 0, 4_294_967_295, true) ?? draw(),
    times: number('--times', 1, 10_000, true) ?? 1,
    full: given.has('--full'),
    help: given.has('--help'),
  };
}
