import { afterAll, beforeAll, expect, it } from 'vitest';
import { inBrowser } from '../support/browser.js';
import { goTo, signedIn } from '../support/console-page.js';
import { openWorld, type World, write } from '../support/console-world.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

/** Ten thousand leases: the page stays what it is with ten. */

const LEASES = 10_000;
const AT_ONCE = 64;

inBrowser('the console with ten thousand leases', (browser) => {
  let coordinator: CoordinatorProcess;
  let world: World;
  let run: string;

  beforeAll(async () => {
    coordinator = await startCoordinatorProcess({ env: { WRIT_MAX_LEASES_PER_RUN: '20000' } });
    world = await openWorld(coordinator);
    run = await world.run('Holds a lot');
    const { lease } = coordinator.client('runner');
    let next = 0;
    const hold = async (): Promise<void> => {
      for (let at = next++; at < LEASES; at = next++) {
        await lease.acquireWriteSet({
          runId: run,
          entries: [{ resource: `tenant/${at % 100}/job-${at}`, access: 3, scope: 1, actions: ['repair'] }],
          idempotencyKey: `many-${at}`,
          ttl: { seconds: 3_600n, nanos: 0 },
        } as never);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, hold));
  }, 300_000);

  afterAll(async () => {
    world?.close();
    await coordinator?.stop();
  });

  it('shows them by resource and by expiry, with rows for what is seen only', async () => {
    const page = await signedIn(browser, coordinator, 'operator');
    await goTo(page, '/live');
    await page.getByRole('heading', { name: '10,000 leases' }).waitFor({ timeout: 60_000 });
    await page.getByRole('button', { name: 'Open tenant', exact: true }).click();
    await page.getByRole('button', { name: 'Open tenant/7', exact: true }).click();
    await page.getByRole('link', { name: 'job-7', exact: true }).waitFor();
    // Rows that are not seen are not there.
    expect(await page.locator('main tr').count()).toBeLessThan(80);

    await page.getByRole('radio', { name: 'By expiry' }).click();
    await page.getByRole('region', { name: 'Leases by expiry' }).waitFor();
    await page.evaluate("document.querySelector('.long-list').scrollTo(0, 1e9)");
    await page.locator('tr[aria-rowindex="10001"]').waitFor();
    expect(await page.locator('main tr').count()).toBeLessThan(80);

    const renewed = await world.api.get<{ leases: { leaseId: string }[] }>('runner', '/v1/leases?page_size=500');
    for (let burst = 0; burst < 5; burst += 1) {
      const renewals = renewed.leases.map(({ leaseId }) => ({ leaseId }));
      await world.api.post('runner', '/v1/leases/renew', { runId: run, renewals });
    }
    const { lease } = await world.acquire(run, [write('release/prod-eu', 'promote')]);
    try {
      await page.getByRole('heading', { name: '10,001 leases' }).waitFor();
      await page.getByLabel('Resource has').fill('prod-eu');
      await page.getByRole('heading', { name: '1 lease' }).waitFor();
      expect(await page.locator('main tr').count()).toBeLessThan(80);
    } finally {
      await world.api.post('runner', `/v1/leases/${lease?.leaseId}/release`, { runId: run });
    }
  });
});
