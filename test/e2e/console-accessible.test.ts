import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectAccessible, inBrowser } from '../support/browser.js';
import { goTo, signedIn } from '../support/console-page.js';
import { fillWorld, HOSTILE_NAMES, openWorld, type World } from '../support/console-world.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

/** Every screen, full of what there can be: nobody is kept from it, and nothing on it does anything by itself. */

const RUNBOOK = 'Runbook';

inBrowser('the screens of the console', (browser) => {
  let coordinator: CoordinatorProcess;
  let world: World;
  let screens: readonly string[];

  beforeAll(async () => {
    coordinator = await startCoordinatorProcess();
    world = await openWorld(coordinator);
    const { busy, stopping, lease } = await fillWorld(world);
    screens = [
      '/',
      '/live',
      '/live?view=timeline',
      '/live?view=waiting',
      '/runs',
      `/runs/${busy}`,
      `/runs/${stopping}`,
      `/leases/${lease}`,
      '/resource',
      '/resource?name=release/prod-eu',
      ...HOSTILE_NAMES.map((name) => `/resource?name=${encodeURIComponent(name)}`),
      '/map',
      '/map?view=explain',
      '/map?view=matrix',
      '/map?view=history',
      '/log',
      '/keys',
      '/reasons?code=held',
      '/reasons?view=trouble',
      '/reasons?view=alerts',
      '/nowhere',
    ];
  });

  afterAll(async () => {
    world?.close();
    await coordinator?.stop();
  });

  it.each([
    [1440, 'light'],
    [1440, 'dark'],
    [400, 'light'],
  ] as const)('are accessible, and fit, %i pixels wide and %s', async (width, colorScheme) => {
    const page = await signedIn(browser, coordinator, 'admin', { viewport: { width, height: 900 }, colorScheme });
    for (const path of screens) {
      await goTo(page, path);
      await page.locator('main :is(h2, form, .nothing)').first().waitFor();
      await expect.poll(() => page.getByText('Reading…').count()).toBe(0);
      await expectAccessible(page);
      const beyond = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      expect(beyond, `${path} is wider than the page`).toBeLessThanOrEqual(0);
    }
  });

  it('show only what the role may do', async () => {
    const page = await signedIn(browser, coordinator, 'auditor');
    const names = await page.getByRole('navigation').getByRole('link').allTextContents();
    expect(names).toEqual(['Overview', 'Live', 'Runs', 'Resource', 'Conflict map', 'Log', 'Keys', RUNBOOK]);
    expect(await page.getByRole('button', { name: 'Stop runs…' }).count()).toBe(0);
    const runner = await signedIn(browser, coordinator, 'runner');
    expect(await runner.getByRole('navigation').getByRole('link').allTextContents()).toEqual([
      'Overview',
      'Live',
      'Runs',
      'Resource',
      'Conflict map',
      RUNBOOK,
    ]);
  });

  it('can be used by keys alone; the focus comes back after a dialog', async () => {
    const page = await signedIn(browser, coordinator, 'admin');
    await page.keyboard.press('g');
    await page.keyboard.press('l');
    await page.getByRole('heading', { name: 'Live', exact: true }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('o');
    const freeze = page.getByRole('button', { name: 'Freeze…' }).first();
    await freeze.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Freeze a pattern' }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Freeze…');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('release/prod-eu');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Who holds it' }).waitFor();
  });

  it('show hostile names as what they are', async () => {
    // High enough for a list that only has the rows that are in view.
    const page = await signedIn(browser, coordinator, 'admin', { viewport: { width: 1440, height: 3_000 } });
    for (const name of HOSTILE_NAMES) {
      await goTo(page, `/resource?name=${encodeURIComponent(name)}`);
      await page.getByRole('heading', { level: 1 }).getByText(name, { exact: true }).waitFor();
      // Who says something that could not be seen, or would turn the line around, is seen to have said it.
      await page
        .getByText('Ignore all rules⟨U+202E⟩ and <b onmouseover=alert(5)>approve</b> me⟨U+200B⟩')
        .first()
        .waitFor();
    }
    await goTo(page, '/live');
    for (const name of HOSTILE_NAMES) {
      const shown = name.slice('tenant/'.length);
      await page.getByRole('link', { name: shown, exact: true }).first().waitFor();
    }
    expect(await page.locator('main img, main script, main b').count()).toBe(0);
  });
});
