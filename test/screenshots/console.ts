import { mkdir, rm } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, it } from 'vitest';
import { inBrowser } from '../support/browser.js';
import { fillWorld, HOSTILE_NAMES, openWorld, type World } from '../support/console-world.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

/** Pictures of every screen, narrow and wide, light and dark: `npm run screenshots`. */

const FOLDER = 'test-results/screenshots';
const WIDTHS = [400, 1440];
const SCHEMES = ['light', 'dark'] as const;

inBrowser('pictures of the console', (browser) => {
  let coordinator: CoordinatorProcess;
  let world: World;
  let screens: readonly (readonly [string, string, ((page: Page) => Promise<unknown>)?])[];

  beforeAll(async () => {
    await rm(FOLDER, { recursive: true, force: true });
    await mkdir(FOLDER, { recursive: true });
    coordinator = await startCoordinatorProcess();
    world = await openWorld(coordinator);
    const { busy, stopping, lease } = await fillWorld(world);
    const named = (name: string) => `/resource?name=${encodeURIComponent(name)}`;
    const click = (name: string | RegExp) => (page: Page) => page.getByRole('button', { name }).first().click();
    screens = [
      ['overview', '/'],
      ['live-tree', '/live'],
      ['live-timeline', '/live?view=timeline'],
      ['live-waiting', '/live?view=waiting'],
      ['runs', '/runs'],
      ['run', `/runs/${busy}`],
      ['run-stopping', `/runs/${stopping}`],
      ['run-stop', `/runs/${busy}`, click(/Stop this run/)],
      ['lease', `/leases/${lease}`],
      ['resource', named('release/prod-eu')],
      ['resource-rules', named('integration-config/acme')],
      ['resource-hostile', named(HOSTILE_NAMES[0] ?? '')],
      ['resource-none', '/resource'],
      ['map', '/map'],
      [
        'map-explain',
        '/map?view=explain&a=task+rotate-token+tenant%3Dacme&b=write+integration-config%2Facme+patch',
        click('Explain'),
      ],
      ['map-matrix', '/map?view=matrix'],
      ['map-history', '/map?view=history'],
      ['log', '/log'],
      ['log-verify', '/log', click('Verify the chain')],
      ['keys', '/keys'],
      ['reasons', '/reasons?code=held'],
      ['runbook', '/reasons?view=trouble'],
      ['keyboard', '/', (page) => page.keyboard.press('?')],
      ['freeze', '/', click('Freeze…')],
      ['thaw', '/', click('Thaw…')],
      ['stop-runs', '/', click('Stop runs…')],
    ];
  });

  afterAll(async () => {
    world?.close();
    await coordinator?.stop();
  });

  it.each(WIDTHS.flatMap((width) => SCHEMES.map((scheme) => [width, scheme] as const)))(
    '%i pixels wide, %s',
    async (width, scheme) => {
      const options = { viewport: { width, height: 900 }, colorScheme: scheme, reducedMotion: 'reduce' } as const;
      const url = `http://${coordinator.http}`;
      const page = await browser.open(url, options);
      const shoot = async (name: string) => {
        await page.screenshot({
          path: `${FOLDER}/${name}-${width}-${scheme}.png`,
          fullPage: !(await page.locator('dialog').count()),
        });
      };
      await page.getByLabel('Token').waitFor();
      await shoot('sign-in');
      await page.getByLabel('Token').fill(coordinator.tokens.admin);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.locator('.shell').waitFor();
      for (const [name, path, act] of screens) {
        await page.goto(url + path);
        await page.locator('h1').waitFor();
        await act?.(page);
        await page.waitForTimeout(700);
        await shoot(name);
      }
    },
    300_000,
  );
});
