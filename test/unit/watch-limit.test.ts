import { describe, expect, it } from 'vitest';
import { WatchLimit } from '../../src/services/watch-limit.js';

describe('the limit of watches', () => {
  it('is told by what is counted, and by how many there may be', () => {
    const limit = new WatchLimit('streams of the log');
    for (let count = 0; count < 64; count += 1) limit.take('anna');
    expect(() => limit.take('anna')).toThrow(
      expect.objectContaining({
        reason: 'WATCH_LIMIT',
        message: expect.stringContaining('64 streams of the log of yours and 64 altogether'),
        details: { metadata: { limited: 'streams of the log', max_of_one: '64', max: '1000' } },
      }),
    );
    limit.release('anna');
    limit.take('anna');
    expect(limit.count).toBe(64);
  });

  it('counts each kind for itself, and all principals together', () => {
    const [fences, log] = [new WatchLimit('watches of fences'), new WatchLimit('streams of the log')];
    for (let count = 0; count < 1_000; count += 1) fences.take(`principal-${count % 20}`);
    expect(() => fences.take('anna')).toThrow(expect.objectContaining({ reason: 'WATCH_LIMIT' }));
    log.take('anna');
  });
});
