import { accessSync, constants } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import axe from 'axe-core';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest';

/**
 * Tests in a real browser: a Chromium of this machine, driven by playwright-core, which brings none along and downloads
 * none. Every page of every test must go without a violation of the Content-Security-Policy, an error on its console, an
 * exception that nobody caught, and a request to another host.
 */

/** Where a Chromium is: WRIT_CHROMIUM, or one on the PATH; null: there is none. */
function findChromium(): string | null {
  const { WRIT_CHROMIUM: given, PATH: path = '' } = process.env;
  if (given !== undefined && given !== '') return given;
  const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
  const places = [...path.split(delimiter), '/usr/bin'].flatMap((place) => names.map((name) => join(place, name)));
  return places.find(isExecutable) ?? null;
}

const NO_BROWSER =
  'no Chromium is here, so the tests in a browser are skipped. `apt-get install chromium` brings one; WRIT_CHROMIUM names another.';

export interface TestBrowser {
  /** A page of a new context at this address, as a person without cookies has it; `hosts` may be asked besides. */
  open(url: string, options?: BrowserContextOptions, hosts?: readonly string[]): Promise<Page>;
  /** Another page of the same person. */
  openBeside(page: Page, url: string): Promise<Page>;
  /** What was wrong with the pages of this test until now; those that are given here are expected, and taken out. */
  complaints(expected?: RegExp): string[];
}

/** A suite that runs where a browser is, and says so where there is none. */
export function inBrowser(name: string, tests: (browser: TestBrowser) => void): void {
  const executable = findChromium();
  if (executable === null) process.stderr.write(`${name}: ${NO_BROWSER}\n`);
  describe.skipIf(executable === null)(name, () => {
    const browser = new Chromium(executable ?? '');
    beforeAll(() => browser.start());
    afterEach(async ({ task }) => {
      if (task.result?.state === 'fail') await browser.picture(task.name);
      const complaints = await browser.close();
      expect(complaints).toEqual([]);
    });
    afterAll(() => browser.stop());
    tests(browser);
  });
}

/** WCAG 2.2 at level AA, and what axe holds for good practice besides. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Fails with every rule of accessibility that the page breaks, and where. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(
    (values) =>
      (globalThis as unknown as { axe: typeof axe }).axe.run({
        runOnly: { type: 'tag', values },
        resultTypes: ['violations'],
      }),
    RULES,
  );
  expect(
    violations.map(({ id, help, nodes }) => ({
      id,
      help,
      where: nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`),
    })),
  ).toEqual([]);
}

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** A slow machine is no failure. */
const TIMEOUT_MS = 30_000;
/** Where pictures of tests that failed are put. */
const PICTURES = 'test-results/browser';
/** Chromium writes an answer of the API that is no success to the console; whether it was right is for the test to say. */
const REFUSED_BY_API = /^Failed to load resource: the server responded with a status of 4\d\d /;

const TELL_VIOLATIONS = `
  document.addEventListener('securitypolicyviolation', (event) => {
    __writViolation(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile);
  });
`;

class Chromium implements TestBrowser {
  readonly #executable: string;
  #browser: Browser | null = null;
  #contexts: BrowserContext[] = [];
  #complaints: string[] = [];

  constructor(executable: string) {
    this.#executable = executable;
  }

  async start(): Promise<void> {
    this.#browser = await chromium.launch({ executablePath: this.#executable, args: ARGS, timeout: TIMEOUT_MS });
  }

  async stop(): Promise<void> {
    await this.#browser?.close();
  }

  async open(url: string, options: BrowserContextOptions = {}, hosts: readonly string[] = []): Promise<Page> {
    if (this.#browser === null) throw new Error('the browser has not started');
    const context = await this.#browser.newContext({ locale: 'en-GB', ...options });
    this.#contexts.push(context);
    context.setDefaultTimeout(TIMEOUT_MS);
    await this.#listen(context, [new URL(url).host, ...hosts]);
    const page = await context.newPage();
    await page.goto(url);
    return page;
  }

  async openBeside(page: Page, url: string): Promise<Page> {
    const other = await page.context().newPage();
    await other.goto(url);
    return other;
  }

  complaints(expected?: RegExp): string[] {
    const all = [...this.#complaints];
    if (expected !== undefined) this.#complaints = all.filter((complaint) => !expected.test(complaint));
    return all;
  }

  /** Ends a test; what was wrong with its pages. */
  async close(): Promise<readonly string[]> {
    await Promise.all(this.#contexts.map((context) => context.close()));
    const complaints = this.#complaints;
    this.#contexts = [];
    this.#complaints = [];
    return complaints;
  }

  async picture(name: string): Promise<void> {
    await mkdir(PICTURES, { recursive: true });
    const file = `${PICTURES}/${name.replace(/[^\w-]+/g, '-').slice(0, 100)}`;
    const pages = this.#contexts.flatMap((context) => context.pages());
    await Promise.all(pages.map((page, at) => page.screenshot({ path: `${file}-${at}.png` }).catch(() => undefined)));
  }

  async #listen(context: BrowserContext, hosts: readonly string[]): Promise<void> {
    const complain = (text: string): void => void this.#complaints.push(text);
    await context.exposeBinding('__writViolation', (_, text: string) => complain(`policy: ${text}`));
    await context.addInitScript({ content: TELL_VIOLATIONS });
    context.on('weberror', (error) => complain(`exception: ${error.error().message}`));
    context.on('console', (message) => {
      const wrong = message.type() === 'error' || message.type() === 'warning';
      if (wrong && !REFUSED_BY_API.test(message.text())) complain(`${message.type()}: ${message.text()}`);
    });
    context.on('request', (request) => {
      const { protocol, host } = new URL(request.url());
      if (protocol !== 'data:' && protocol !== 'blob:' && !hosts.includes(host)) complain(`asked ${request.url()}`);
    });
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
