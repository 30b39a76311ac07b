import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { inBrowser } from '../support/browser.js';
import { goTo, signedIn } from '../support/console-page.js';
import { openWorld, type World, write } from '../support/console-world.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { later } from '../support/later.js';

/** What happens is seen as it happens, and ended in two clicks (R4, R5). */

inBrowser('the console while agents work', (browser) => {
  let coordinator: CoordinatorProcess;
  let world: World;

  beforeAll(async () => {
    coordinator = await startCoordinatorProcess();
    world = await openWorld(coordinator);
  });

  afterAll(async () => {
    world?.close();
    await coordinator?.stop();
  });

  let attempts = 0;
  /** Of this attempt of a test: what is in doubt, or frozen, stays so. */
  const named = (name: string): string => `release/${name}-${attempts}`;

  beforeEach(() => {
    attempts += 1;
  });

  /** Nobody holds anything or waits for it any more. */
  afterEach(async () => {
    const operator = coordinator.client('operator');
    await operator.run.stopRuns({ all: true, reason: 'a test', idempotencyKey: randomUUID() });
    operator.close();
  });

  it('shows a waiter that is granted, without anybody loading anything anew', async () => {
    const holder = await world.run('Holds the release');
    const waiter = await world.run('Wants the release');
    const held = await world.acquire(holder, [write(named('granted'), 'promote')]);
    const waiting = world.queue(waiter, [write(named('granted'), 'promote')], { purpose: 'My turn' });
    const page = await signedIn(browser, coordinator, 'operator');
    await goTo(page, '/live?view=waiting');
    await page.getByText('1 request behind it').first().waitFor();
    await page.getByText('My turn').first().waitFor();
    await world.api.post('runner', `/v1/leases/${held.lease?.leaseId}/release`, { runId: holder });
    expect((await waiting).lease?.leaseId).toBeDefined();
    await page.getByText('Nobody waits for anybody.').first().waitFor();
    await page.getByRole('radio', { name: 'By resource' }).click();
    await page
      .getByRole('row')
      .filter({ hasText: waiter.slice(0, 8) })
      .getByText('active', { exact: true })
      .first()
      .waitFor();
    expect(
      await page
        .getByRole('row')
        .filter({ hasText: holder.slice(0, 8) })
        .count(),
    ).toBe(0);
  });

  it('stands still while it is paused, and goes on with what is', async () => {
    const page = await signedIn(browser, coordinator, 'operator');
    await goTo(page, `/live?resource=${named('paused')}`);
    await page.getByText('No lease fits the filters.').first().waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused').first().waitFor();
    const beside = await browser.openBeside(page, page.url());
    await beside.getByText('No lease fits the filters.').first().waitFor();
    await world.acquire(await world.run('Unseen'), [write(named('paused'), 'promote')]);
    // A page beside it, that is not paused, has shown it by now.
    await beside
      .getByRole('link', { name: named('paused') })
      .first()
      .waitFor();
    expect(await page.getByText('No lease fits the filters.').count()).toBe(1);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page
      .getByRole('link', { name: named('paused') })
      .first()
      .waitFor();
  });

  it('lets an operator stop a run while its agent writes: told before, and after', async () => {
    const run = await world.run('Writes and writes');
    const lease = await world.acquire(run, [write(named('stopped'), 'promote')]);
    const page = await signedIn(browser, coordinator, 'operator');
    await goTo(page, `/runs/${run}`);
    await page.getByText('It may write now.').first().waitFor();
    expect(await world.admit(run, lease, 'promote', 'stop-1')).toBe(true);
    await page
      .getByRole('row')
      .filter({ hasText: named('stopped') })
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Stop this run…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Stop this run' });
    await dialog.getByText('1 live lease ends').first().waitFor();
    await dialog.getByText('1 write was let in with an unknown outcome').first().waitFor();
    await dialog.getByLabel('Why', { exact: true }).fill('It writes too much');
    await dialog.getByRole('button', { name: 'Stop the run' }).click();
    await dialog.getByText('In force everywhere since').first().waitFor();
    await dialog.getByText('Still open:').first().waitFor();
    expect(await world.admit(run, lease, 'promote', 'stop-2')).toBe(false);
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await page.getByText('It may not write.').first().waitFor();
    await page.getByText('It comes to stopped once every outcome is known.').first().waitFor();
    // The agent's target finds out what became of the write: the run comes to rest, and that is seen.
    await world.report(lease, 'promote', 'stop-1', 'v2');
    await page.getByText('The outcome of every write that was let in is known.').first().waitFor();
    await page.getByText('It writes too much').first().waitFor();
    await page.getByText('It is over, and writes no more.').first().waitFor();
    // What is over counts down to nothing.
    await page.getByText('it would have lasted until').first().waitFor();
    await page.getByText('denied').first().waitFor();
    // The write that was refused is found by its lease, too (A1).
    await goTo(page, `/leases/${lease.lease?.leaseId}`);
    await page
      .getByText(/^1 write denied/)
      .first()
      .waitFor();
  });

  it('tells, before a lease is revoked, who waits for it and is granted', async () => {
    const holder = await world.run('Sits on the release');
    const held = await world.acquire(holder, [write(named('revoked'), 'promote')], { ttl: '3600s' });
    const waiting = world.queue(await world.run('Is next'), [write(named('revoked'), 'promote')], {
      purpose: 'The hotfix',
    });
    const page = await signedIn(browser, coordinator, 'operator');
    await goTo(page, `/leases/${held.lease?.leaseId}`);
    // It asked for an hour, and its kind allows half of that.
    await page.getByText('asked for 1 h').first().waitFor();
    await page.getByRole('button', { name: 'Revoke…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke this lease' });
    await dialog
      .getByText(/^Next in turn, and granted by this .* \(1 request\):/)
      .first()
      .waitFor();
    await dialog.getByText('The hotfix', { exact: true }).first().waitFor();
    await dialog.getByLabel('Why', { exact: true }).fill('It hangs');
    await dialog.getByRole('button', { name: 'Revoke the lease' }).click();
    await dialog.getByText('In force everywhere since').first().waitFor();
    expect((await waiting).lease?.leaseId).toBeDefined();
  });

  it('shows first what is stuck: a write in doubt, until somebody settles it', async () => {
    const run = await world.run('Ends in the middle');
    const lease = await world.acquire(run, [write(named('doubtful'), 'promote')]);
    const page = await signedIn(browser, coordinator, 'operator');
    await world.admit(run, lease, 'promote', 'doubt-1');
    await world.api.post('operator', `/v1/leases/${lease.lease?.leaseId}/revoke`, { reason: 'a test' });
    const waiting = world.queue(await world.run('Waits for the doubt'), [write(named('doubtful'), 'promote')]);
    await goTo(page, `/live?view=waiting&resource=${named('doubtful')}`);
    await page.locator('.wait-node', { hasText: 'in doubt' }).getByText('1 request behind it').waitFor();
    await goTo(page, '/');
    const settle = page.getByRole('button', { name: 'Settle…' });
    const row = page
      .getByRole('row')
      .filter({ hasText: named('doubtful') })
      .filter({ has: settle });
    await row.getByRole('button', { name: 'Settle…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Settle a write in doubt' });
    await dialog.getByLabel('What became of it?').selectOption({ label: 'It happened' });
    await dialog.getByLabel('Version now').fill('v3');
    await dialog.getByLabel('Why', { exact: true }).fill('The target has it');
    await dialog.getByRole('button', { name: 'Settle it' }).click();
    await dialog.getByText('It is settled').first().waitFor();
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await row.waitFor({ state: 'detached' });
    expect((await waiting).lease?.leaseId).toBeDefined();
  });

  it('freezes a pattern and thaws it, and tells what that did', async () => {
    const page = await signedIn(browser, coordinator, 'operator');
    await page.getByRole('button', { name: 'Freeze…' }).first().click();
    const freeze = page.getByRole('dialog', { name: 'Freeze a pattern' });
    await freeze.getByLabel('Resource or pattern').fill('dns/{zone}/{record}');
    await freeze.getByLabel('Why', { exact: true }).fill('an outage');
    await freeze.getByRole('button', { name: 'Stop grants' }).click();
    await freeze.getByText('Kinds under it').first().waitFor();
    await freeze.getByRole('button', { name: 'Close' }).last().click();
    const run = await world.run('Wants what is frozen');
    expect((await world.acquire(run, [write('dns/eu/www', 'change')])).refusal?.kind).toBe('REFUSAL_KIND_FROZEN');
    await page.getByRole('row').filter({ hasText: 'an outage' }).getByRole('button', { name: 'Thaw…' }).click();
    const thaw = page.getByRole('dialog', { name: 'Thaw a pattern' });
    await thaw.getByRole('button', { name: 'Thaw it' }).click();
    await thaw.getByText('No waiting request was granted by this').first().waitFor();
    // Nothing is frozen any more, and what the thaw did is still there to read.
    await page.getByText('Nothing is frozen.', { exact: true }).first().waitFor();
    await thaw.getByText('No waiting request was granted by this').first().waitFor();
    await thaw.getByRole('button', { name: 'Close' }).last().click();
    expect((await world.acquire(run, [write('dns/eu/www', 'change')])).lease).toBeDefined();
    await goTo(page, '/log?kind=pattern_thawed');
    await page.getByText('All that fit.', { exact: true }).first().waitFor();
    expect(await page.locator('.event-words').first().locator('p').first().textContent()).toBe(
      'thawed dns/{zone}/{record} ',
    );
  });

  it("thaws on the frozen resource's own page, and says who was granted by it", async () => {
    await world.api.post('operator', '/v1/freezes', { pattern: named('thawed'), reason: 'while we look' });
    const waiting = world.queue(await world.run('Waits for the thaw'), [write(named('thawed'), 'promote')]);
    const page = await signedIn(browser, coordinator, 'operator');
    await goTo(page, `/live?state=waiting&resource=${named('thawed')}`);
    await page.getByRole('heading', { name: '1 waiting request', exact: true }).waitFor();
    await goTo(page, `/resource?name=${named('thawed')}`);
    await page.getByText('while we look', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Thaw…' }).click();
    const thaw = page.getByRole('dialog', { name: 'Thaw a pattern' });
    await thaw.getByRole('button', { name: 'Thaw it' }).click();
    await thaw.getByText('1 waiting request was granted by this.', { exact: true }).first().waitFor();
    expect((await waiting).lease?.leaseId).toBeDefined();
  });

  it('finds runs, leases and requests by what the screens show of their ids', async () => {
    const run = await world.run('Is looked for');
    const { lease } = await world.acquire(run, [write(named('sought'), 'promote')], {
      requestId: `sought-${attempts}`,
    });
    const page = await signedIn(browser, coordinator, 'operator');
    const find = async (text: string) => {
      await page.keyboard.press('/');
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
    };
    await find(run.slice(0, 8));
    await page.waitForURL(`**/runs/${run}`);
    await find(lease?.leaseId.slice(0, 8) ?? '');
    await page.waitForURL(`**/leases/${lease?.leaseId}`);
    await find(`sought-${attempts}`);
    await page.waitForURL(`**/log?request=sought-${attempts}`);
    await find(named('sought'));
    await page.waitForURL(`**/resource?name=${encodeURIComponent(named('sought'))}`);
  });

  it('reads again what could not be read for a moment, though nothing happens meanwhile', async () => {
    await world.run('Is read in the end');
    const page = await signedIn(browser, coordinator, 'operator');
    // Until that was seen: how soon it is read again is not for this test to race with.
    let isFailing = true;
    await page.route(/\/v1\/runs\?/, async (route) => {
      if (!isFailing) return route.continue();
      const body = JSON.stringify({ reason: 'REPLICA_STALE', detail: 'Its heartbeat is old.', status: 503 });
      await route.fulfill({ status: 503, contentType: 'application/problem+json', body });
    });
    await goTo(page, '/runs');
    await page.getByText('Its heartbeat is old.').first().waitFor();
    isFailing = false;
    await page.getByText('Is read in the end', { exact: true }).first().waitFor();
    expect(await page.getByText('Its heartbeat is old.').count()).toBe(0);
    browser.complaints(/status of 503/);
  });

  it('never shows what it has read of another namespace', async () => {
    await world.acquire(await world.run('Only here'), [write(named('only-here'), 'promote')]);
    await world.api.post('admin', '/v1/namespaces', { name: 'elsewhere' });
    const page = await signedIn(browser, coordinator, 'operator');
    await goTo(page, '/runs');
    await page.getByText('Only here', { exact: true }).first().waitFor();
    // The answers about the other namespace are kept back: nothing of this one may stand in for them.
    let answer = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route(/namespace=elsewhere/, async (route) => {
      await held;
      await route.continue();
    });
    for (const [path, mark] of [
      ['/runs', /^Only here$/],
      ['/live', /only-here-\d+$/],
    ] as const) {
      await goTo(page, path);
      await page.getByText(mark).first().waitFor();
      await page.getByLabel('Namespace').selectOption('elsewhere');
      await page.waitForURL(/namespace=elsewhere/);
      expect(await page.getByText(mark).count()).toBe(0);
      await page.getByLabel('Namespace').selectOption('default');
    }
    answer();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('finds why a request was refused, and verifies the log in the browser', async () => {
    const run = await world.run('Asks for what is forbidden');
    await world.acquire(run, [write('secret/db')], { requestId: `why-was-this-${attempts}` });
    const page = await signedIn(browser, coordinator, 'auditor');
    await goTo(page, `/log?request=why-was-this-${attempts}`);
    await page.getByRole('heading', { name: '1 event', exact: true }).waitFor();
    await page.getByRole('link', { name: 'forbidden', exact: true }).first().click();
    await page.getByRole('heading', { name: 'FORBIDDEN', exact: true }).first().waitFor();
    await goTo(page, '/log');
    await page.getByRole('button', { name: 'Verify the chain' }).click();
    await page.getByText('The log is whole.').first().waitFor();
    const download = later(page.waitForEvent('download'));
    await page.getByRole('link', { name: 'Export' }).click();
    expect((await download).suggestedFilename()).toMatch(/^default-1-\d+\.ndjson$/);
  });
});
