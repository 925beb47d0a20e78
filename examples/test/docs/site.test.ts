/** `npm run docs`: a site whose links work, whose search finds, and whose API reference has every export. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import MiniSearch, { type Options } from "minisearch";
import { afterAll, beforeAll, expect, test } from "vitest";
import { build } from "../../../packages/cli/test/command.ts";
import { ROOT } from "./pages.ts";

const out = mkdtempSync(join(tmpdir(), "slotkeeper-site-"));
const optionsFile = pathToFileURL(join(ROOT, "scripts/docs/search-options.mjs")).href;
let printed = "";

beforeAll(() => {
  build();
  printed = execFileSync(process.execPath, [join(ROOT, "scripts/docs.mjs"), "--out", out], { encoding: "utf8" });
}, 120_000);
afterAll(() => rmSync(out, { recursive: true }));

const pages = (): string[] =>
  (readdirSync(out, { recursive: true }) as string[]).filter((file) => file.endsWith(".html"));
const read = (file: string): string => readFileSync(join(out, file), "utf8");

test("every link, picture and script of the site is there", () => {
  expect(pages().length).toBeGreaterThan(40);
  const broken = pages().flatMap((page) => {
    const targets = [...read(page).matchAll(/(?:href|src|srcset)="([^"]*)"/g)].map(([, target = ""]) => target);
    return targets
      .filter((target) => !/^(?:[a-z]+:|#)/.test(target))
      .filter((target) => !existsSync(join(out, dirname(page), target.replace(/#.*/, ""))))
      .map((target) => `${page}: ${target}`);
  });
  expect(broken).toEqual([]);
});

test("every anchor of the site is a heading of its page", () => {
  const broken = pages().flatMap((page) => {
    const targets = [...read(page).matchAll(/href="([^":]*)#([^"]+)"/g)];
    return targets
      .filter(
        ([, file = "", anchor]) => !read(file === "" ? page : join(dirname(page), file)).includes(`id="${anchor}"`),
      )
      .map(([, file, anchor]) => `${page}: ${file}#${anchor}`);
  });
  expect(broken).toEqual([]);
});

async function search(query: string): Promise<string[]> {
  const { SEARCH_OPTIONS } = (await import(optionsFile)) as { SEARCH_OPTIONS: Options };
  const [, json = ""] = /= ("[\s\S]*");\n$/.exec(read("assets/search-index.js")) ?? [];
  const found = MiniSearch.loadJSON(JSON.parse(json) as string, SEARCH_OPTIONS).search(query);
  return found.map(({ id }) => id as string);
}

test.each([
  ["circuit breaker", /^(?:glossary|tutorial|guides\/)/],
  ["maxSlotPerHost", /^(?:reference\/config|glossary)\.html/],
  ["tryAcquire", /^api\//],
  ["ACQUIRE_TIMEOUT", /^(?:reference\/|api\/)/],
])("searching for %s finds where it is explained", async (query, expected) => {
  expect((await search(query)).slice(0, 5)).toContainEqual(expect.stringMatching(expected));
});

test.each([
  ["breaker.openSeconds", "reference/config.html#row-breakeropenseconds"],
  ["QUEUE_FULL", "reference/errors.html#row-queue_full"],
  ["slotkeeper_waiters", "reference/metrics.html#row-slotkeeper_waiters"],
])("the first result for %s is the row that defines it", async (query, expected) => {
  expect((await search(query))[0]).toBe(expected);
});

test.each([
  ["slotkeeper", "SemaphoreOptions", ["registry", "ttlMs", "acquireTimeoutMs", "maxWaiters", "onEvent"]],
  ["slotkeeper", "SlotPoolOptions", ["maxPerKey", "idleMs", "maxWaiters"]],
  ["slotkeeper-limiter", "LimiterOptions", ["levels", "maxWaiters"]],
  ["slotkeeper-limiter", "LimiterRunOptions", ["isOverload", "timeoutMs", "key"]],
  ["slotkeeper-transfers", "TransferSlotsOptions", ["uploadsPerUser", "maxWaiters", "idleMs"]],
])("the API page of %s lists the own and the inherited options of %s", (page, name, options) => {
  const [, section = ""] = read(`api/${page}.html`).split(new RegExp(`<h2 id="${name.toLowerCase()}">`));
  const text = section.replace(/<h2 [\s\S]*/, "");
  expect(options.filter((option) => !text.includes(option))).toEqual([]);
});

test.each([
  "AcquireDownloadSlot",
  "MemorySemaphore",
  "cancel_task_after_ttl",
  "get_acquired_stats",
  "CreateSemaphore",
  "GetConcurrencyConfig",
])("searching for %s, a name of an original design, finds the page that maps it", async (query) => {
  expect((await search(query)).slice(0, 3)).toContainEqual(expect.stringMatching(/^guides\/from-the-seeds\.html/));
});

test("the API reference has a page for each entry, and says how many exports it has", () => {
  expect(readdirSync(join(out, "api")).sort()).toEqual([
    "slotkeeper-client-express.html",
    "slotkeeper-client-fastify.html",
    "slotkeeper-client-hono.html",
    "slotkeeper-client-node.html",
    "slotkeeper-client.html",
    "slotkeeper-effects.html",
    "slotkeeper-limiter.html",
    "slotkeeper-testing.html",
    "slotkeeper-threads.html",
    "slotkeeper-transfers.html",
    "slotkeeper.html",
  ]);
  expect(printed).toMatch(/^\d+ pages, \d+ exports in the API reference/);
  expect(printed, "every exported class, function and constant has an example").not.toContain("@example");
  expect(read("api/slotkeeper.html")).toMatch(/<h2 id="semaphore">[\s\S]*Example:/);
});
