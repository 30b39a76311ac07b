import { afterAll, beforeAll, describe } from 'vitest';
import { appendTests } from './store-conformance/append.js';
import type { Context, StoreUnderTest, Use } from './store-conformance/context.js';
import { exclusiveTests } from './store-conformance/exclusive.js';
import { listTests } from './store-conformance/lists.js';
import { logTests } from './store-conformance/log.js';
import { projectionTests } from './store-conformance/projections.js';
import { refusalTests } from './store-conformance/refusals.js';
import { upkeepTests } from './store-conformance/upkeep.js';

export type { StoreUnderTest } from './store-conformance/context.js';

/** What every implementation of Store promises; the engine relies on nothing else. */
export function storeConformance(name: string, makeStore: () => Promise<StoreUnderTest>): void {
  describe(`store: ${name}`, () => {
    let context: Context;
    beforeAll(async () => {
      const under = await makeStore();
      context = { under, store: under.store };
    });
    afterAll(async () => {
      await context?.under.dispose();
    });
    const lazily: Use = (test) => () => test(context);
    describe('append', () => appendTests(lazily));
    describe('refusals', () => refusalTests(lazily));
    describe('exclusive append', () => exclusiveTests(lazily));
    describe('reading the log', () => logTests(lazily));
    describe('projections', () => projectionTests(lazily));
    describe('lists', () => listTests(lazily));
    describe('upkeep', () => upkeepTests(lazily));
  });
}
