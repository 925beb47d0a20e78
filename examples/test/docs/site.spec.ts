/** `npm run docs`: a site whose links work at any path, whose search finds, and whose API reference has every export. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { launchChromium } from "@slotkeeper/testkit/browser";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT } from "./pages.ts";

const out = mkdtempSync(join(tmpdir(), "slotkeeper-site-"));
const BASE = "/some/path/";

beforeAll(() => {
  const vitepress = join(ROOT, "node_modules/vitepress/bin/vitepress.js");
  execFileSync(process.execPath, [vitepress, "build", "docs", "--outDir", out, "--base", BASE], { cwd: ROOT });
}, 240_000);
afterAll(() => rmSync(out, { recursive: true }));

const filesWith = (ending: string): string[] =>
  (readdirSync(out, { recursive: true }) as string[]).filter((file) => file.endsWith(ending));
const pages = (): string[] => filesWith(".html");
const read = (file: string): string => readFileSync(join(out, file), "utf8");

/** The file of the site that a link of a page points to. */
function fileOf(page: string, target: string): string {
  const path = target.replace(/#.*/, "");
  const file = path.startsWith(BASE) ? path.slice(BASE.length) : join(dirname(page), path);
  return path === "" ? page : /(?:^|\/)$/.test(file) || file === "." ? join(file, "index.html") : file;
}

const targetsOf = (page: string): string[] =>
  [...read(page).matchAll(/\s(?:href|src)="([^"]*)"/g)].map(([, target = ""]) => target);
const isOwn = (target: string): boolean => !/^[a-z]+:/.test(target);

describe("the files", () => {
  test("every link, picture and script is there, at the path that the site was built for", () => {
    expect(pages().length).toBeGreaterThan(40);
    const broken = pages().flatMap((page) =>
      targetsOf(page)
        .filter(isOwn)
        .filter((target) => !existsSync(join(out, fileOf(page, target))))
        .map((target) => `${page}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test("every anchor is a heading or a row of its page", () => {
    const broken = pages().flatMap((page) =>
      targetsOf(page)
        .filter((target) => isOwn(target) && target.includes("#"))
        .filter((target) => !read(fileOf(page, target)).includes(`id="${target.replace(/.*#/, "")}"`))
        .map((target) => `${page}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test("every page is there as Markdown, with links that work there", () => {
    const markdown = filesWith(".md");
    expect(markdown.sort()).toEqual(
      pages()
        .filter((page) => page !== "404.html")
        .map((page) => page.replace(/html$/, "md"))
        .sort(),
    );
    const broken = markdown.flatMap((page) =>
      [
        ...read(page)
          .replaceAll(/^```[\s\S]*?^```$|`[^`\n]*`/gm, "")
          .matchAll(/\]\(([^)\s]+)\)/g),
      ]
        .map(([, target = ""]) => target)
        .filter((target) => isOwn(target) && !existsSync(join(out, fileOf(page, target))))
        .map((target) => `${page}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test("llms.txt lists every page of the index, and all of the API", () => {
    const listed = [...read("llms.txt").matchAll(/^- \[.+?\]\((.+?)\)/gm)].map(([, target = ""]) => target);
    expect(listed.filter((target) => !existsSync(join(out, target)))).toEqual([]);
    const missing = filesWith(".md").filter((page) => !/^decisions\/\d|^(?:index|contents)\.md/.test(page));
    expect(missing.filter((page) => !listed.includes(page))).toEqual([]);
    expect(read("llms.txt")).toMatch(/^# Slotkeeper\n\n> Limit how many/);
  });

  test("the API reference has a page for each entry", () => {
    expect(
      filesWith(".html")
        .filter((file) => file.startsWith("api/"))
        .sort(),
    ).toEqual([
      "api/slotkeeper-client-express.html",
      "api/slotkeeper-client-fastify.html",
      "api/slotkeeper-client-hono.html",
      "api/slotkeeper-client-node.html",
      "api/slotkeeper-client-opentelemetry.html",
      "api/slotkeeper-client.html",
      "api/slotkeeper-cloudflare.html",
      "api/slotkeeper-effects.html",
      "api/slotkeeper-limiter.html",
      "api/slotkeeper-testing.html",
      "api/slotkeeper-threads.html",
      "api/slotkeeper-transfers.html",
      "api/slotkeeper.html",
    ]);
  });

  test("the API reference has an example for every exported class, function and constant", () => {
    const sections = filesWith(".md")
      .filter((file) => file.startsWith("api/"))
      .flatMap((file) => read(file).split(/^## /m).slice(1));
    const values = sections.filter((section) => /^\w+\n\n```ts\n(?:abstract |class |function |const )/.test(section));
    expect(values.length).toBeGreaterThan(60);
    const bare = values.filter((section) => !section.includes("Example:"));
    expect(bare.map((section) => section.split("\n", 1)[0])).toEqual([]);
  });

  test.each([
    ["slotkeeper", "SemaphoreOptions", ["registry", "ttlMs", "acquireTimeoutMs", "maxWaiters", "onEvent"]],
    ["slotkeeper", "SlotPoolOptions", ["maxPerKey", "idleMs", "maxWaiters"]],
    ["slotkeeper-limiter", "LimiterOptions", ["levels", "maxWaiters"]],
    ["slotkeeper-limiter", "LimiterRunOptions", ["isOverload", "timeoutMs", "key"]],
    ["slotkeeper-transfers", "TransferSlotsOptions", ["uploadsPerUser", "maxWaiters", "idleMs"]],
  ])("the API page of %s lists the own and the inherited options of %s", (page, name, options) => {
    const [, section = ""] = read(`api/${page}.md`).split(new RegExp(`^## ${name}$`, "m"));
    const text = section.replace(/^## [\s\S]*/m, "");
    expect(options.filter((option) => !text.includes(option))).toEqual([]);
  });
});

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

describe("in a browser, from a plain static server", () => {
  let server: Server;
  let browser: Browser;
  let url = "";

  beforeAll(async () => {
    server = createServer((request, response) => {
      const path = new URL(request.url ?? "", "http://localhost").pathname;
      const file = join(out, fileOf("", decodeURIComponent(path)));
      if (!path.startsWith(BASE) || !existsSync(file)) return void response.writeHead(404).end();
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
      response.end(readFileSync(file));
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${BASE}`;
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    server.close();
  });

  /** Every page fails the test for a request to another server, a missing file, or an error of a script. */
  async function open(path: string, use: (page: Page) => Promise<void>, options = {}): Promise<void> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("request", (request) => request.url().startsWith(url) || problems.push(request.url()));
    page.on("response", (response) => response.ok() || problems.push(`${response.status()} ${response.url()}`));
    page.on("pageerror", (error) => problems.push(error.message));
    try {
      await page.goto(url + path, { waitUntil: "networkidle" });
      await use(page);
      expect(problems.filter((problem) => !problem.startsWith("data:"))).toEqual([]);
    } finally {
      await context.close();
    }
  }

  async function search(page: Page, query: string): Promise<string[]> {
    await page.locator("#localsearch-input").fill(query);
    await page.locator(".VPLocalSearchBox .result mark").first().waitFor();
    await page.waitForTimeout(300); // the box waits for 200 ms after the last key
    const found = await page.locator(".VPLocalSearchBox a.result").evaluateAll((links) => links.map(String));
    return found.map((link) => link.slice(url.length));
  }

  test("the search finds where a name is defined or explained, with excerpts", async () => {
    await open("", async (page) => {
      await page.locator("#local-search button").click();
      const first: Record<string, string> = {
        "breaker.openSeconds": "reference/config.html#row-breakeropenseconds",
        QUEUE_FULL: "reference/errors.html#row-queue_full",
        slotkeeper_waiters: "reference/metrics.html#row-slotkeeper_waiters",
      };
      for (const [query, expected] of Object.entries(first)) expect((await search(page, query))[0]).toBe(expected);
      const among: Record<string, RegExp> = {
        "circuit breaker": /^(?:glossary|tutorial|guides\/)/,
        maxSlotPerHost: /^(?:reference\/config|glossary)\.html/,
        tryAcquire: /^api\//,
        ACQUIRE_TIMEOUT: /^(?:reference\/|api\/)/,
        AcquireDownloadSlot: /^guides\/from-the-seeds/,
        MemorySemaphore: /^guides\/from-the-seeds/,
        cancel_task_after_ttl: /^guides\/from-the-seeds/,
        CreateSemaphore: /^guides\/from-the-seeds/,
      };
      for (const [query, expected] of Object.entries(among)) {
        expect((await search(page, query)).slice(0, 4), query).toContainEqual(expect.stringMatching(expected));
      }
      await search(page, "trial request");
      expect(await page.locator(".VPLocalSearchBox .excerpt mark").count()).toBeGreaterThan(0);
    });
  });

  test("a code block is copied by its button", async () => {
    const permissions = ["clipboard-read", "clipboard-write"];
    await open(
      "guides/library.html",
      async (page) => {
        const block = page.locator('.vp-doc div[class*="language-"]').first();
        await block.hover();
        await block.locator("button.copy").click();
        await block.locator("button.copied").waitFor();
        const copied = await page.evaluate<string>("navigator.clipboard.readText()");
        expect(copied.trim()).toBe((await block.locator("code").innerText()).trim());
      },
      { permissions },
    );
  });

  test("dark mode has a switch, and the pictures follow it", async () => {
    await open("", async (page) => {
      const dark = page.locator("img.dark-only");
      expect(await dark.isVisible()).toBe(false);
      await page.locator(".VPNavBarAppearance button").click();
      await page.locator("html.dark").waitFor();
      expect(await dark.isVisible()).toBe(true);
      expect(await page.locator("img.light-only").isVisible()).toBe(false);
    });
  });

  test("a reader goes on to the next page and back", async () => {
    await open("guides/install.html", async (page) => {
      await page.locator(".pager-link.next").click();
      await page.waitForURL(`${url}tutorial.html`);
      await page.locator(".pager-link.prev").click();
      await page.waitForURL(`${url}guides/install.html`);
    });
  });

  test("a phone shows a table of contents, and no page is wider than its screen", async () => {
    const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
    await open(
      "reference/config.html",
      async (page) => {
        await page.locator(".VPLocalNavOutlineDropdown button").click();
        await page.locator(".VPLocalNavOutlineDropdown").getByRole("link", { name: "Invalid combinations" }).click();
        await page.waitForURL(/#invalid-combinations$/);
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
      },
      phone,
    );
  });
});
