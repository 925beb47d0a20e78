import type { ServiceHistory, ServiceInstances } from "@slotkeeper/protocol";
import { DEMO_PLAN, Load } from "@slotkeeper/testkit/load";
import type { Page } from "playwright-core";
import { afterEach, describe, expect, it } from "vitest";
import { acquire, keepPolling, openPage, release, startService, stopService } from "./dashboard-fixture.ts";

const loads: Load[] = [];
afterEach(() => Promise.all(loads.splice(0).map((load) => load.stop())));

const text = (page: Page) => page.locator("main").innerText();
const seen = <T>(look: () => T) => expect.poll(look, { timeout: 15_000 });

/** Five holders, and as many waiters as asked for. */
async function crowd(service: Awaited<ReturnType<typeof startService>>, hostname: string, waiters: number) {
  for (let index = 0; index < 5 + waiters; index++) await acquire(service, { hostname, ipBucket: `bucket-${index}` });
}

async function openHost(page: Page, name: string): Promise<void> {
  await page.getByRole("navigation").getByRole("link", { name: "Hosts" }).click();
  await page.getByRole("link", { name }).click();
  await page.getByRole("heading", { name: "Slots", exact: true }).waitFor();
}

describe("under a live load", () => {
  it("the overview shows the numbers and draws their charts, and the hosts change by themselves", async () => {
    const service = await startService();
    const plans = DEMO_PLAN.map((plan) => (plan.failures === undefined ? plan : { ...plan, failures: 1 }));
    loads.push(new Load({ url: service.url }, plans));
    const { page, complaints } = await openPage(service.url);
    for (const title of ["Slots in use", "Waiting", "Grants", "Wait for a slot", "Rejected"]) {
      await page.getByRole("region", { name: title, exact: true }).waitFor();
    }
    await seen(async () => Number(await page.locator(".tile-value strong").nth(2).innerText())).toBeGreaterThan(1);
    expect(await page.locator(".chart-box canvas").count()).toBe(5);
    const chart = page.getByRole("img", { name: /^Slots in use/ });
    await seen(() => chart.getAttribute("aria-label")).toMatch(/in use: now \d+, highest [1-9]\d*; limit: now \d+/);
    await page.getByRole("navigation").getByRole("link", { name: "Hosts" }).click();
    const row = page.getByRole("row", { name: /api\.payments\.example/ });
    const before = await row.innerText();
    await seen(() => row.innerText()).not.toBe(before);
    await seen(() => page.getByRole("row", { name: /mail\.relay.*open, \d+ s left/ }).count()).toBe(1);
    expect(complaints).toEqual([]);
  });
});

describe("the empty state", () => {
  it("says how to make the first request, and shows it arriving", async () => {
    const service = await startService();
    const { page } = await openPage(service.url);
    await page.getByRole("heading", { name: "No slot has been requested yet" }).waitFor();
    const command = await page.getByLabel("first request", { exact: true }).innerText();
    const [, url = "", body = ""] = /^curl -sS (\S+) -d '(.*)'$/.exec(command) ?? [];
    const response = await fetch(url, { method: "POST", body });
    expect(await response.json()).toMatchObject({ result: "granted" });
    await seen(() => text(page)).toContain("The first request arrived: it asked for a slot of example.com");
    await page.getByRole("link", { name: "All hosts (1)" }).click();
    const rows = page.getByRole("row");
    await seen(() => rows.count()).toBe(2);
    // The table ends with its last row: no empty space that looks like missing rows.
    const bottoms = await page
      .locator(".rows, .rows-body")
      .evaluateAll((boxes) => boxes.map((box) => Math.round(box.getBoundingClientRect().bottom)));
    expect(Math.abs((bottoms[0] ?? 0) - (bottoms[1] ?? 99))).toBeLessThanOrEqual(2);
    await page.getByRole("link", { name: "example.com" }).first().click();
    await seen(() => text(page)).toMatch(/1 of 5 in use, 4 free/);
  });
});

describe("a host with an open breaker", () => {
  async function open(service: Awaited<ReturnType<typeof startService>>, hostname: string): Promise<void> {
    const init = { method: "POST", body: JSON.stringify({ state: "open" }) };
    const answer = await fetch(`${service.url}/api/v0/hosts/${hostname}/breaker`, init);
    expect(answer.status).toBe(204);
  }

  it("has the state “breaker open” and comes first, before a crowd, in all tables and on a phone", async () => {
    const service = await startService();
    await crowd(service, "busy.example", 20);
    await acquire(service, { hostname: "failing.example", ipBucket: "b" });
    await open(service, "failing.example");
    for (const viewport of [
      { width: 1280, height: 800 },
      { width: 360, height: 740 },
    ]) {
      const { page } = await openPage(service.url, { viewport });
      const rows = page.locator(".rows-body [role=row]");
      for (const name of ["Overview", "Hosts"]) {
        await page.getByRole("navigation").getByRole("link", { name }).click();
        await seen(() => rows.count()).toBe(2);
        await seen(() => rows.first().innerText()).toMatch(/^failing\.example\s+breaker open\s/);
        await seen(() => rows.nth(1).innerText()).toMatch(/^busy\.example\s+crowded\s/);
      }
    }
  });
});

describe("the overview", () => {
  it("shows the hosts to look at first above the charts, the worst first, and how many need it", async () => {
    const service = await startService();
    await acquire(service, { hostname: "calm.example" });
    const { page } = await openPage(service.url);
    const first = page.getByRole("region", { name: "Look here first" });
    await seen(() => first.innerText()).toContain("No session waits, and every breaker is closed.");
    for (let index = 0; index < 7; index++) await crowd(service, `busy-${index}.example`, 1);
    await seen(() => first.innerText()).toContain("7 hosts with a queue or an open breaker");
    expect(await first.innerText()).not.toContain("calm.example");
    expect(await first.getByRole("row").count()).toBe(6);
    const [table, charts] = await Promise.all([first.boundingBox(), page.locator(".tiles").boundingBox()]);
    expect((table?.y ?? 0) + (table?.height ?? 0)).toBeLessThanOrEqual(charts?.y ?? 0);
  });

  it("has charts that begin with the service, and a unit for each number", async () => {
    const service = await startService();
    await acquire(service, { hostname: "calm.example" });
    const history = (await (await fetch(`${service.url}/api/v0/history`)).json()) as ServiceHistory;
    expect(history.known).toBeLessThan(history.granted.length);
    const { page } = await openPage(service.url);
    const rejected = page.getByRole("region", { name: "Rejected", exact: true });
    await seen(() => rejected.innerText()).toMatch(/0 sessions in the last minute[\s\S]*queue full 0\s+in 5 s/);
    // The pointer at the left edge shows the first step: with 15 minutes before the start, it would be long ago.
    const chart = page.getByRole("img", { name: /^Slots in use/ }).locator(".u-over");
    await chart.hover({ position: { x: 1, y: 20 } });
    const shown = await page.locator(".legend span").first().innerText();
    const [hours = 0, minutes = 0, seconds = 0] = shown.split(":").map(Number);
    const at = new Date();
    const ago = at.getHours() * 3600 + at.getMinutes() * 60 + at.getSeconds() - (hours * 3600 + minutes * 60 + seconds);
    expect((ago + 86_400) % 86_400).toBeLessThan(600);
  });
});

describe("the hosts", () => {
  it("sort by any column both ways, and are found by a part of their name", async () => {
    const service = await startService();
    await crowd(service, "busy.example", 3);
    for (const hostname of ["alpha.example", "beta.example"]) await acquire(service, { hostname });
    const { page } = await openPage(`${service.url}/#/hosts`);
    const names = () => page.getByRole("table", { name: "Hosts" }).getByRole("link").allInnerTexts();
    await seen(names).toEqual(["busy.example", "alpha.example", "beta.example"]);
    await page.getByRole("button", { name: "Host", exact: true }).click();
    await seen(names).toEqual(["alpha.example", "beta.example", "busy.example"]);
    expect(await page.getByRole("columnheader", { name: "Host" }).getAttribute("aria-sort")).toBe("ascending");
    await page.getByRole("button", { name: "Host", exact: true }).click();
    await seen(names).toEqual(["busy.example", "beta.example", "alpha.example"]);
    await page.keyboard.press("/");
    await page.keyboard.type("ALPHA");
    await seen(names).toEqual(["alpha.example"]);
    expect(await page.getByText("1 of 3 hosts").count()).toBe(1);
    await page.keyboard.type("x");
    await seen(() => text(page)).toContain("No host matches.");
  });
});

describe("the host page", () => {
  it("answers why a session waits: the limit that binds and the forecast; the holders are shown once, as cells", async () => {
    const service = await startService();
    await crowd(service, "busy.example", 2);
    const { page } = await openPage(service.url);
    await openHost(page, "busy.example");
    const why = page.getByRole("region", { name: /Why does/ });
    await seen(() => why.innerText()).toMatch(/Its client is not connected|All slots of this host are in use: 5 of 5/);
    keepPolling(service, { hostname: "busy.example", ipBucket: "me" });
    await page.getByRole("button", { name: "Why does the session at position 3 wait?" }).click();
    await seen(() => why.innerText()).toContain("All slots of this host are in use: 5 of 5.");
    expect(await why.innerText()).toMatch(/Position\s+3 of 3/);
    const mentions = (await text(page)).match(/bucket-0\b/g) ?? [];
    expect(await page.locator(".cell", { hasText: "bucket-0" }).innerText()).toMatch(/held [\d.]+ m?s\s+lease \d+ s/);
    expect(
      await page
        .locator(".cell", { hasText: "bucket-0" })
        .getByTitle(/^since \d\d:\d\d:\d\d$/)
        .count(),
    ).toBe(1);
    // Once as a holder, once in the table of shares.
    expect(mentions).toHaveLength(2);
    // The first five were granted while slots were free: that says nothing about how fast the queue moves.
    expect(await why.innerText()).toMatch(/Forecast\s+None yet: too few waiting sessions/);
  });

  it("names the bucket's own limit where that binds, and only the slots of that bucket", async () => {
    const service = await startService();
    for (const ipBucket of ["greedy", "other"]) await acquire(service, { hostname: "free.example", ipBucket });
    keepPolling(service, { hostname: "free.example", ipBucket: "greedy" });
    const { page } = await openPage(service.url);
    await openHost(page, "free.example");
    const why = page.getByRole("region", { name: /Why does/ });
    await seen(() => why.innerText()).toContain("bucket “greedy” already has 1 slot; the limit per bucket is 1.");
    expect(await page.locator(".cell", { hasText: "awaited" }).allInnerTexts()).toEqual([
      expect.stringMatching(/^greedy/),
    ]);
  });

  it("shows budgets as bars with what is left and their refill, debts, and the budget that a session waits for", async () => {
    const slow = { limit: 1_000, perSeconds: 10_000, burst: 500 };
    const budgets = { requests: { limit: 5, perSeconds: 1 }, tokens: { ...slow, default: 200 }, images: slow };
    const service = await startService({ fairQueue: { maxSlotPerIp: -1, budgets } });
    const { slotToken } = await acquire(service, { hostname: "api.example", cost: { tokens: 400, images: 100 } });
    await release(service, { slotToken, used: { images: 1_000 } });
    keepPolling(service, { hostname: "api.example", bucket: "me" });
    const { page, complaints } = await openPage(service.url);
    await openHost(page, "api.example");
    const bars = page.getByRole("region", { name: "Budgets" }).getByRole("listitem");
    await seen(() => bars.allInnerTexts()).toEqual([
      expect.stringMatching(/^requests\s+5 of 5 left\s+refills 5 per second\s+full$/),
      expect.stringMatching(/^tokens\s+10\d of 500 left\s+refills 1,000 per 10,000 s\s+full in 1 h \d+ min$/),
      expect.stringMatching(/^images\s+awaited\s+(?:500|499) in debt\s/),
    ]);
    const why = page.getByRole("region", { name: /Why does/ });
    await seen(() => why.innerText()).toMatch(/The budget “images” is (?:500|499) in debt: /);
    expect(await why.innerText()).toMatch(/Forecast\s+About 1 h 23 min until the budget has refilled\./);
    expect(complaints).toEqual([]);
  });

  it("shows the busiest keys with their slots, their waiters and what is left of their budgets", async () => {
    const tokens = { limit: 1_000, perSeconds: 10_000_000, default: 200 };
    const keys = { user: { slots: 1, shadow: true }, tenant: { slots: 2, budgets: { tokens } } };
    const service = await startService({ fairQueue: { maxSlotPerIp: -1, keys } });
    const acme = { hostname: "api.example", keys: { tenant: "acme", user: "ann" } };
    await acquire(service, acme);
    await acquire(service, acme);
    keepPolling(service, acme);
    const { page, complaints } = await openPage(service.url);
    await openHost(page, "api.example");
    const rows = page.getByRole("region", { name: "Busiest keys" }).getByRole("row");
    await seen(() => rows.allInnerTexts()).toEqual([
      expect.stringMatching(/^Key\s+In use\s+Waiting\s+Budgets$/i),
      expect.stringMatching(/^tenant acme\s+2 of 2\s+1\s+tokens 600 of 1,000 left$/),
      expect.stringMatching(/^user ann shadow\s+2 of 1\s+1\s*$/),
    ]);
    expect(complaints).toEqual([]);
  });

  it("shows classes as bars with slots in use, floor and ceiling, and the class of each slot and session", async () => {
    const classes = { chat: { weight: 4, floor: 2 }, batch: { ceiling: 2 } };
    const service = await startService({ fairQueue: { maxSlotPerHost: 4, maxSlotPerIp: -1, classes } });
    await acquire(service, { hostname: "api.example", bucket: "ann", class: "chat", width: 3 });
    await acquire(service, { hostname: "api.example", bucket: "ann" });
    keepPolling(service, { hostname: "api.example", bucket: "bob", class: "batch" });
    const { page, complaints } = await openPage(service.url);
    await openHost(page, "api.example");
    const bars = page.getByRole("region", { name: "Classes" }).getByRole("listitem");
    await seen(() => bars.allInnerTexts()).toEqual([
      expect.stringMatching(/^batch\s+0 of 2 in use\s+no floor, ceiling 2.*\s+1 waiting$/),
      expect.stringMatching(/^chat\s+weight 4\s+3 in use\s+floor 2, no ceiling.*\s+none waiting$/),
      expect.stringMatching(/^default\s+1 in use\s+no floor, no ceiling.*\s+none waiting$/),
    ]);
    expect(await page.locator(".cell .cell-holder").allInnerTexts()).toEqual(
      expect.arrayContaining([expect.stringMatching(/^ann\s+chat\s+3 slots$/)]),
    );
    expect(await page.getByRole("table", { name: "Waiting sessions" }).innerText()).toMatch(/bob\s+batch/);
    const buckets = page.getByRole("table", { name: "Queue by bucket" });
    expect(await buckets.getByRole("row").nth(1).innerText()).toMatch(/^bob\s+batch\s+0\s+1\s+1\s/);
    expect(await buckets.innerText()).toMatch(/ann\s+chat\s+3\s+0\s/);
    expect(complaints).toEqual([]);
  });

  it("shows slots as cells, the queue by bucket beside the fair share, and how long they waited", async () => {
    const service = await startService();
    await crowd(service, "busy.example", 2);
    const { page } = await openPage(service.url);
    await openHost(page, "busy.example");
    await seen(() => page.locator(".cell .cell-holder").count()).toBe(5);
    expect(await page.locator(".cell").first().innerText()).toMatch(/bucket-\d\s+held .*\s+lease \d+ s/);
    const buckets = page.getByRole("table", { name: "Queue by bucket" });
    expect(await buckets.getByRole("row").nth(1).innerText()).toMatch(/bucket-[56]\s+0\s+1\s+[12]\s/);
    expect(await buckets.getByRole("row").nth(1).innerText()).toMatch(/even|behind|ahead/);
    await page.getByRole("img", { name: /Grants by wait\. .*≤ 1 ms: \d/ }).waitFor();
  });

  it("says that a host is not known, and leads back", async () => {
    const service = await startService();
    const { page } = await openPage(`${service.url}/#/hosts/none`);
    await page.getByRole("heading", { name: "No such host" }).waitFor();
    await page.getByRole("link", { name: "All hosts" }).click();
    await page.getByRole("heading", { name: "Hosts" }).waitFor();
  });
});

describe("instances", () => {
  it("lists who is alive with version and configuration", async () => {
    const service = await startService();
    const { page } = await openPage(`${service.url}/#/instances`);
    await seen(() => page.getByRole("row").count()).toBe(2);
    expect(await page.getByRole("row").nth(1).innerText()).toMatch(/\(this one\)\s+alive\s+http:.*0\.1\.0/s);
  });
});

describe("instances of a fleet", () => {
  it("are marked where their limits differ, and where one has fallen silent", async () => {
    const service = await startService();
    const { page } = await openPage(service.url);
    const one = { isThis: false, seenAgoMs: 1000, version: "0.1.0", configVersion: "v1", configHash: "aaaa", upMs: 1 };
    const fleet: ServiceInstances = {
      at: Date.now(),
      isFleet: true,
      hasDrift: true,
      instances: [
        { ...one, instance: "a", isThis: true },
        { ...one, instance: "b" },
        { ...one, instance: "c", configHash: "bbbb", seenAgoMs: 22_000 },
      ],
    };
    await page.route("**/api/v0/instances", (route) => route.fulfill({ json: fleet }));
    await page.getByRole("navigation").getByRole("link", { name: "Instances" }).click();
    await page.getByText("Not all instances run with the same limits.").waitFor();
    expect(await page.getByRole("row", { name: /^b alive/ }).innerText()).toContain("same");
    expect(await page.getByRole("row", { name: /^c silent for 22 s/ }).innerText()).toContain("differs");
  });
});

describe("a phone", () => {
  it("shows every page within its width, hosts in rows of two lines", async () => {
    const service = await startService();
    await crowd(service, "a-host-with-a-rather-long-name.of-some-department.example", 3);
    const { page } = await openPage(service.url, { viewport: { width: 360, height: 740 } });
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.getByRole("heading", { name: "Look here first" }).waitFor();
    expect(await overflow()).toBeLessThanOrEqual(0);
    for (const name of ["Hosts", "Instances"]) {
      await page.getByRole("navigation").getByRole("link", { name }).click();
      await page.getByRole("heading", { name, exact: true }).waitFor();
      expect(await overflow()).toBeLessThanOrEqual(0);
    }
    const instances = page.locator(".table-scroll");
    await instances.getByText("(this one)").waitFor();
    expect(await instances.evaluate((element) => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(0);
    await openHost(page, "a-host-with");
    await page.getByRole("heading", { name: "How long they waited" }).waitFor();
    expect(await overflow()).toBeLessThanOrEqual(0);
    for (const table of await page.locator(".rows").all()) {
      expect(await table.evaluate((element) => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(0);
    }
  });
});

describe("colours", () => {
  it("follow the system until the person chooses, and the choice outlives a reload", async () => {
    const service = await startService();
    const { page } = await openPage(service.url, { colorScheme: "light" });
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await page.getByText("Live", { exact: true }).waitFor();
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.getByText("Theme", { exact: true }).waitFor();
    await page.getByLabel("Theme").selectOption("Light");
    expect(await background()).toBe(light);
    await page.reload();
    await page.getByText("Live", { exact: true }).waitFor();
    expect(await background()).toBe(light);
  });
});

describe("the connection", () => {
  it("is lost with the service: the page says so, keeps the last numbers, and comes back by itself", async () => {
    const service = await startService();
    const listen = new URL(service.url).host;
    await crowd(service, "busy.example", 1);
    const { page } = await openPage(`${service.url}/#/hosts`);
    await page.getByRole("link", { name: "busy.example" }).waitFor();
    await stopService(service);
    await page.getByRole("alert").filter({ hasText: "No connection to the service." }).waitFor();
    expect(await page.getByRole("link", { name: "busy.example" }).count()).toBe(1);
    expect(await page.getByText("Disconnected").count()).toBe(1);
    const again = await startService({ listen });
    await acquire(again, { hostname: "after.example" });
    await page.getByRole("link", { name: "after.example" }).waitFor({ timeout: 30_000 });
    await page.getByText("Live", { exact: true }).waitFor();
    expect(await page.getByRole("link", { name: "busy.example" }).count()).toBe(0);
  });
});
