import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inBrowser } from '../support/browser.js';
import { goTo, signedIn } from '../support/console-page.js';
import { openWorld, type World } from '../support/console-world.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

/** Admins change the map: with what is wrong told as they type, and without losing what the other one wrote (C12, T3). */

inBrowser('the conflict map in the console', (browser) => {
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

  const editor = (page: Page) => page.getByRole('textbox', { name: 'Text of the conflict map' });
  const documentNow = async () => world.api.get<{ document: string; version: string }>('admin', '/v1/conflict-map');

  async function edit(page: Page, line: string): Promise<void> {
    await editor(page).click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.type(line);
    await page.getByText('Edited, not applied').first().waitFor();
  }

  async function apply(page: Page, why: string): Promise<void> {
    await page.getByRole('button', { name: 'Apply…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Apply the map' });
    await dialog.getByLabel('Why', { exact: true }).fill(why);
    await dialog.getByRole('button', { name: /^Apply as version/ }).click();
  }

  it('tells what is wrong where it is wrong, as one types', async () => {
    const before = await documentNow();
    const page = await signedIn(browser, coordinator, 'admin');
    await goTo(page, '/map');
    await page.getByRole('heading', { name: 'Valid', exact: true }).waitFor();
    await edit(page, 'nonsense: true\n');
    await page.getByRole('heading', { name: 'Not valid', exact: true }).waitFor();
    await page.getByRole('link', { name: 'unknown_key', exact: true }).first().waitFor();
    // What would be refused is not offered.
    expect(await page.getByRole('button', { name: 'Apply…' }).isDisabled()).toBe(true);
    expect(await page.locator('.problem .place').first().textContent()).toBe('1:1');
    // What does not hold of what must hold is an error, too.
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('Control+Shift+k');
    await page.getByRole('heading', { name: 'Valid', exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Apply…' }).isDisabled()).toBe(true);
    expect(await documentNow()).toEqual(before);
    // Keys are offered as the schema has them.
    await page.keyboard.press('Control+End');
    await page.keyboard.type('alia');
    await page.getByRole('option', { name: 'aliases' }).waitFor();
  });

  /** What Anna gave as her reason, in the attempt that was the last. */
  let ofAnna = 'nothing yet';

  it('keeps the text of two who edit at once, and shows the one what the other has put', async () => {
    const version = Number((await documentNow()).version);
    ofAnna = `a remark of Anna on version ${version}`;
    const anna = await signedIn(browser, coordinator, 'admin');
    const bert = await signedIn(browser, coordinator, 'admin');
    await goTo(anna, '/map');
    await goTo(bert, '/map');
    await edit(anna, '# Anna was here.\n');
    await edit(bert, '# Bert was here.\n');
    // Bert has paused: he does not hear of what Anna does before he applies.
    await bert.getByRole('button', { name: 'Pause' }).click();
    await apply(anna, ofAnna);
    await anna.getByRole('dialog').getByText('It is version').first().waitFor();
    await anna.getByRole('button', { name: 'Close' }).last().click();
    expect((await documentNow()).document).toMatch(/^# Anna was here\.\n/);

    await apply(bert, 'a remark of Bert');
    await bert.getByRole('heading', { name: `Version ${version + 1} was put meanwhile` }).waitFor();
    await bert.getByText(ofAnna).first().waitFor();
    const theirs = bert.getByRole('textbox', { name: `What version ${version + 1} changed` });
    await theirs.getByText('# Anna was here.').first().waitFor();
    expect(await editor(bert).textContent()).toContain('# Bert was here.');
    expect((await documentNow()).document).toMatch(/^# Anna was here\.\n/);

    await bert.getByRole('button', { name: `Go on with mine against version ${version + 1}` }).click();
    await bert.getByRole('radio', { name: 'Diff' }).click();
    await bert
      .getByRole('textbox', { name: `Changes against version ${version + 1}` })
      .getByText('# Anna was here.')
      .first()
      .waitFor();
    await apply(bert, 'a remark of Bert');
    await bert.getByRole('dialog').getByText('It is version').first().waitFor();
    expect(await documentNow()).toMatchObject({
      version: String(version + 2),
      document: expect.stringMatching(/^# Bert was here\.\n/),
    });
  });

  it('goes back to an older version by a new one', async () => {
    const next = Number((await documentNow()).version) + 1;
    const why = `Anna was right, before version ${next}`;
    const page = await signedIn(browser, coordinator, 'admin');
    await goTo(page, '/map?view=history');
    await page.getByText(ofAnna).first().waitFor();
    const row = page.getByRole('row').filter({ hasText: ofAnna });
    await row.getByRole('button', { name: 'Go back to it…' }).click();
    const dialog = page.getByRole('dialog', { name: /^Go back to version/ });
    await dialog.getByLabel('Why', { exact: true }).fill(why);
    await dialog.getByRole('button', { name: new RegExp(`^Put it again, as version ${next}`) }).click();
    await dialog.getByText(`is version ${next} now`).first().waitFor();
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await page.getByText(why).first().waitFor();
    expect(await documentNow()).toMatchObject({
      version: String(next),
      document: expect.stringMatching(/^# Anna was here\.\n/),
    });
  });

  it('explains why two write sets exclude each other, and which tasks can collide', async () => {
    const page = await signedIn(browser, coordinator, 'auditor');
    await goTo(page, '/map?view=explain');
    await page.getByLabel('One run asks for').fill('task rotate-token tenant=acme');
    await page.getByLabel('Another asks for').fill('write integration-config/acme patch');
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.getByText('They conflict').first().waitFor();
    await page.getByText('since the config embeds the token reference').first().waitFor();
    await page.getByLabel('Another asks for').fill('write integration-config/globex patch');
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.getByText('They do not conflict').first().waitFor();
    await goTo(page, '/map?view=matrix');
    await page
      .getByRole('button', { name: /^(edit-config and rotate-token|rotate-token and edit-config): can$/ })
      .first()
      .click();
    await page.getByRole('heading', { name: 'edit-config and rotate-token', exact: true }).waitFor();
    await page.getByText('they exclude each other with some parameters').first().waitFor();
  });
});
