import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { launchChromium } from "@slotkeeper/testkit/browser";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleFile } from "./bundle-file.ts";

/** In the page; see `page.ts`. */
declare const contend: (rounds: number) => Promise<{ twoInside: number; inUse: number; mine: number }>;
declare const blockTheMainThread: () => { name: string; waiting: number };
declare const terminateHolder: () => Promise<{ recovered: number; hasSlot: boolean }>;
declare const crossOriginIsolated: boolean;

let server: Server;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  const [pageScript, workerScript] = await Promise.all([
    bundleFile("page.ts", "browser"),
    bundleFile("page-worker.ts", "browser"),
  ]);
  const files: Record<string, [type: string, body: string | Buffer]> = {
    "/": ["text/html", `<!doctype html><title>threads</title><script type="module" src="/page.mjs"></script>`],
    "/page.mjs": ["text/javascript", readFileSync(pageScript)],
    "/page-worker.mjs": ["text/javascript", readFileSync(workerScript)],
  };
  server = createServer((request, response) => {
    const [type, body] = files[request.url ?? ""] ?? ["text/plain", ""];
    // Without these two a page has no SharedArrayBuffer.
    response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
    response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    response.setHeader("Content-Type", type);
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  browser = await launchChromium();
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  await page.waitForFunction("typeof contend === 'function'");
});

afterAll(async () => {
  await browser?.close();
  await new Promise((resolve) => server?.close(resolve));
});

describe("in a page with workers", () => {
  it("the page is cross-origin isolated", async () => {
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  });

  it("four workers and the main thread are never inside together, and the main thread never blocks", async () => {
    const { twoInside, inUse, mine } = await page.evaluate(() => contend(500));
    expect({ twoInside, inUse }).toEqual({ twoInside: 0, inUse: 0 });
    expect(mine).toBeGreaterThan(0);
  });

  it("blocking the main thread is refused and leaves nothing in the queue", async () => {
    expect(await page.evaluate(() => blockTheMainThread())).toEqual({ name: "TypeError", waiting: 0 });
  });

  it("a terminated worker is recovered by the id it sent", async () => {
    expect(await page.evaluate(() => terminateHolder())).toEqual({ recovered: 1, hasSlot: true });
  });
});
