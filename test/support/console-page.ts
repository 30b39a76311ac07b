import type { Page } from 'playwright-core';
import type { TestBrowser } from './browser.js';
import type { CoordinatorProcess, RoleName } from './coordinator-process.js';

/** A page of the console that somebody with this role has signed in at. */
export async function signedIn(
  browser: TestBrowser,
  coordinator: CoordinatorProcess,
  role: RoleName,
  options: Parameters<TestBrowser['open']>[1] = {},
): Promise<Page> {
  const page = await browser.open(`http://${coordinator.http}`, options);
  await page.getByLabel('Token').fill(coordinator.tokens[role]);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.locator('.shell').waitFor();
  await page.locator('h1').waitFor();
  return page;
}

/** Goes to another screen as a link does it, without loading the page anew. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await page.locator('h1').waitFor();
}
