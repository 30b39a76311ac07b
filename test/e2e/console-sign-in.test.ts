import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import { expectAccessible, inBrowser } from '../support/browser.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { startProvider } from '../support/oidc-provider.js';

/** The first visit: what a person does who has just typed `npm start`. */

inBrowser('signing in at the console', (browser) => {
  let coordinator: CoordinatorProcess;
  let url: string;

  beforeAll(async () => {
    coordinator = await startCoordinatorProcess();
    url = `http://${coordinator.http}`;
  });

  afterAll(() => coordinator?.stop());

  it('works by the link that the coordinator prints, once, and leaves no trace of it', async () => {
    const own = await startCoordinatorProcess();
    onTestFinished(async () => void (await own.stop()));
    const page = await browser.open(own.console);
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    expect(page.url()).toBe(`http://${own.http}/`);
    const session = await page.evaluate<{ principal: object }>(
      "fetch('/auth/session').then((answer) => answer.json())",
    );
    expect(session.principal).toMatchObject({ name: 'console', roles: ['admin', 'operator', 'auditor'] });
    // Neither the address nor anything that scripts can read has the code, the session or the token.
    const seen = await page.evaluate<string[]>(
      '[document.cookie, JSON.stringify({ ...localStorage, ...sessionStorage }), location.href]',
    );
    expect(seen[0]).toBe('');
    const code = new URL(own.console).hash.slice('#code='.length);
    expect(seen.join()).not.toContain(code);
    const cookies = await page.context().cookies();
    expect(cookies).toMatchObject([
      { name: 'writ-session', httpOnly: true, sameSite: 'Strict', secure: false, path: '/' },
    ]);

    const again = await browser.open(own.console);
    await again.getByRole('alert').getByText('CODE_REJECTED').first().waitFor();
    expect(again.url()).toBe(`http://${own.http}/`);
    // Whoever loads the page anew is still signed in.
    await page.reload();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  });

  it('works by a token; a wrong one is told', async () => {
    const page = await browser.open(url);
    await page.getByLabel('Token').fill('writ_wrong');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('alert').getByText('UNAUTHENTICATED').first().waitFor();
    await expectAccessible(page);
    // What the code means is told to whoever is not signed in, too.
    await page.getByRole('link', { name: 'UNAUTHENTICATED' }).click();
    await page.getByText('Nobody is known by what was presented').first().waitFor();
    expect(page.url()).toBe(`${url}/reasons?code=UNAUTHENTICATED`);
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByLabel('Token').fill(coordinator.tokens.auditor);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    expect(await page.locator('.person-name').textContent()).toBe('auditor');
  });

  it('ends with signing out, on every page of the browser', async () => {
    const page = await browser.open(url);
    await page.getByLabel('Token').fill(coordinator.tokens.operator);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    const beside = await browser.openBeside(page, url);
    await beside.getByRole('button', { name: 'Sign out' }).click();
    await beside.getByLabel('Token').waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.reload();
    await page.getByLabel('Token').waitFor();
  });

  it('is told of another person who signed in beside it', async () => {
    const page = await browser.open(url);
    await page.getByLabel('Token').fill(coordinator.tokens.operator);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    // At once, so that the first page does not see that nobody is signed in meanwhile.
    const signIn = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const body = JSON.stringify({ token: coordinator.tokens.admin });
    const beside = await browser.openBeside(page, url);
    expect(
      await beside.evaluate(
        `fetch('/auth/session', ${JSON.stringify({ ...signIn, body })}).then(({ status }) => status)`,
      ),
    ).toBe(200);
    // What the first page asks for is not done in the name of whoever is signed in now; the page says who that is.
    await page.getByRole('button', { name: 'Freeze…' }).first().click();
    await page.getByLabel('Resource or pattern').fill('release/prod');
    await page.getByLabel('Why').fill('a test');
    await page.getByRole('button', { name: 'Stop grants' }).click();
    await page.getByRole('alert').getByText('CSRF_REQUIRED').first().waitFor();
    await expect.poll(() => page.locator('.person-name').textContent()).toBe('admin');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    expect(await page.context().cookies()).toEqual([]);
  });

  it('outlives a restart of the coordinator', async () => {
    const env = { WRIT_HTTP_PORT: String(await freePort()) };
    const own = await startCoordinatorProcess({ env });
    const page = await browser.open(own.console);
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    await own.stop();
    const restarted = await startCoordinatorProcess({ dataDir: own.dataDir, env });
    try {
      await page.reload();
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
      expect(restarted.console).not.toBe(own.console);
      // What the page asked for meanwhile it did not get.
      browser.complaints(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_CONNECTION_RESET|status of 503/);
    } finally {
      await page.context().close();
      await restarted.stop();
    }
  });

  it('works at a provider, from another site and back, and tells when it came to nothing', async () => {
    const provider = await startProvider('ada@example.org');
    const directory = await makeTestDirectory('console');
    const principals = join(directory, 'principals.json');
    const issuer = {
      issuer: provider.issuer,
      audience: provider.clientId,
      discovery: true,
      algorithms: ['ES256'],
      mappings: [{ claims: { email: '*@example.org' }, principal: 'person:{email}', roles: ['auditor'] }],
    };
    await writeFile(principals, JSON.stringify({ principals: [], issuers: [issuer] }));
    const own = await startCoordinatorProcess({
      env: {
        WRIT_TOKENS_FILE: principals,
        WRIT_CONSOLE_OIDC_ISSUER: provider.issuer,
        WRIT_CONSOLE_OIDC_CLIENT_ID: provider.clientId,
      },
    });
    try {
      // Another name of this machine is another site, as a provider is.
      const address = `http://localhost:${own.http.split(':')[1]}`;
      const page = await browser.open(`${address}/live`, {}, [new URL(provider.issuer).host]);
      const link = page.getByRole('link', { name: 'Sign in with your organisation' });
      provider.behave({ denies: true });
      await link.click();
      await page.getByRole('alert').getByText('SIGN_IN_REJECTED').first().waitFor();
      expect(page.url()).toBe(`${address}/`);
      provider.behave({});
      await page.goto(`${address}/live`);
      await link.click();
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
      expect(page.url()).toBe(`${address}/live`);
      expect(await page.locator('.person-name').textContent()).toBe('person:ada@example.org');
      await page.context().close();
    } finally {
      await own.stop();
      await provider.stop();
      await rm(directory, { recursive: true, force: true });
    }
  });
});
