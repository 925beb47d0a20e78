import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Service } from "@slotkeeper/server";
import { launchChromium } from "@slotkeeper/testkit/browser";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Where the screenshots of failed tests go. */
const FAILURES = join(ROOT, "dist-test", "failures");

let built = "";
let browser: Browser;
const services = new Set<Service>();
const pages = new Set<Page>();

beforeAll(async () => {
  built = mkdtempSync(join(tmpdir(), "slotkeeper-dashboard-"));
  const { build } = await import("vite");
  await build({ configFile: join(ROOT, "vite.config.ts"), build: { outDir: built, emptyOutDir: true } });
  browser = await launchChromium();
});

afterAll(async () => {
  await browser.close();
  rmSync(built, { recursive: true });
});

afterEach(async ({ task }) => {
  if (task.result?.state === "fail") await photograph(task.name);
  for (const page of pages) await page.context().close();
  pages.clear();
  await Promise.all([...services].map((service) => service.stop()));
  services.clear();
});

async function photograph(name: string): Promise<void> {
  mkdirSync(FAILURES, { recursive: true });
  for (const [index, page] of [...pages].entries()) {
    const path = join(FAILURES, `${name.replaceAll(/\W+/g, "-").slice(0, 80)}-${index}.png`);
    await page.screenshot({ path, fullPage: true });
    console.error(`screenshot: ${path}`);
  }
}

/** The real service, with the dashboard as it is in the sources now. */
export async function startService(config: object = {}): Promise<Service> {
  const service = await Service.start({
    flags: { listen: "127.0.0.1:0", ...config },
    environment: {},
    log: { write: () => {}, isJson: true, hasColours: false },
    dashboard: built,
  });
  services.add(service);
  return service;
}

export async function stopService(service: Service): Promise<void> {
  services.delete(service);
  await service.stop({ graceMs: 0, deadlineMs: 500 });
}

/** A page of the dashboard. Whatever it complains about is collected; a failed test leaves a screenshot. */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-US", ...options });
  const page = await context.newPage();
  pages.add(page);
  const watched: Watched = { page, complaints: [], requests: [] };
  page.on("pageerror", (error) => watched.complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) {
      watched.complaints.push(message.text());
    }
  });
  page.on("request", (request) => watched.requests.push(request.url()));
  await page.goto(url);
  return watched;
}

export interface Watched {
  readonly page: Page;
  /** Errors of the page, and violations of its policy. */
  readonly complaints: string[];
  readonly requests: string[];
}

/** Waits for a slot with an open poll all the time, as a patient client does, until the end of the test. */
export function keepPolling(service: Service, body: object): void {
  const poll = async () => {
    let { result, queryToken } = await acquire(service, { ...body, waitMs: 1000 });
    while (result === "pending" && services.has(service)) {
      ({ result, queryToken } = await acquire(service, { queryToken }));
    }
  };
  // The end of the service ends it.
  void poll().catch(() => {});
}

/** Asks for a slot as a caller does. */
export async function acquire(service: Service, body: object, headers: Record<string, string> = {}) {
  const init = { method: "POST", headers, body: JSON.stringify("queryToken" in body ? body : { waitMs: 1, ...body }) };
  const response = await fetch(`${service.url}/api/v0/fairqueue/acquire`, init);
  return (await response.json()) as { result: string; slotToken: string; queryToken: string };
}

export async function release(service: Service, body: object): Promise<void> {
  const init = { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(`${service.url}/api/v0/fairqueue/release`, init);
  if (!response.ok) throw new Error(`release: ${response.status}`);
}
