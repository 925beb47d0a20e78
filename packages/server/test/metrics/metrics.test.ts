import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { FairQueue, type HostStore, type KeptHost, MemoryStore } from "@slotkeeper/queue";
import { loadConfig } from "@slotkeeper/server";
import {
  HostSettings,
  METRICS,
  type Metric,
  Refusals,
  type ScrapeSources,
  scrape,
  Telemetry,
} from "@slotkeeper/server/internals";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { describe, expect, it } from "vitest";
import { startFleet } from "../fleet-fixture.ts";
import { type Fixture, openWith, startFixture } from "../service-fixture.ts";
import { metricsReference } from "./metrics-reference.ts";
import { type Page, parsePage } from "./parse-page.ts";

const fileOf = (path: string) => new URL(`../../../../${path}`, import.meta.url);
const read = (path: string) => readFileSync(fileOf(path), "utf8");
const page = async (fixture: Fixture): Promise<Page> => parsePage((await fixture.request("GET", "/metrics")).text);
/** They refill so slowly that the numbers do not depend on the speed of the machine. */
const TOKENS = { tokens: { limit: 1000, perSeconds: 10_000, burst: 500 } } as const;
const CATALOGUE: Metric[] = Object.values(METRICS);

describe("GET /metrics", () => {
  it("has every metric of the catalogue and no other, with its help and type, in well-formed text", async () => {
    const fixture = await startFixture({ config: { fairQueue: { budgets: TOKENS, classes: { chat: {} } } } });
    const slot = await fixture.take();
    await fixture.release(slot.slotToken);
    const reply = await fixture.request("GET", "/metrics");
    expect(reply.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const { families } = parsePage(reply.text);
    const exposed = [...families.values()].map(({ name, kind, help }) => ({ name, kind, help }));
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    expect(exposed.sort(byName)).toEqual(CATALOGUE.map(({ name, kind, help }) => ({ name, kind, help })).sort(byName));
    for (const { labels, name, kind } of CATALOGUE) {
      for (const series of families.get(name)?.series ?? []) {
        const own = Object.keys(series.labels).filter((label) => !(kind === "histogram" && label === "le"));
        expect([name, own]).toEqual([name, [...labels]]);
      }
    }
  });

  it("counts the life of a session: waits, holds, ends, rejects, late releases, reclaimed leases", async () => {
    const hosts = { "dies.example": { zombieTimeoutSeconds: 0.05 } };
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1, hosts } } });
    const slot = await fixture.take();
    await fixture.release(slot.slotToken);
    await fixture.release(slot.slotToken);
    // The lease of the first slot expires, and the second call finds that.
    for (let time = 0; time < 2; time++) await fixture.take({ hostname: "dies.example" });
    await fixture.call("cancel", { queryToken: (await fixture.acquire({ hostname: "b" })).body.queryToken });
    const { value } = await page(fixture);
    expect(value("slotkeeper_sessions_ended_total", { end: "granted" })).toBe(3);
    expect(value("slotkeeper_wait_seconds_count")).toBe(3);
    expect(value("slotkeeper_slots_released_total")).toBe(1);
    expect(value("slotkeeper_hold_seconds_count")).toBe(1);
    expect(value("slotkeeper_late_releases_total")).toBe(1);
    expect(value("slotkeeper_slots_reclaimed_total")).toBeGreaterThan(0);
    expect(value("slotkeeper_sessions_ended_total", { end: "canceled" })).toBe(1);
    expect(value("slotkeeper_cycle_seconds_count")).toBeGreaterThan(0);
    expect(value("slotkeeper_commit_records_sum")).toBeGreaterThan(0);
    expect(value("slotkeeper_store_seconds_count", { operation: "commit" })).toBeGreaterThan(1);
    expect(value("slotkeeper_commit_refusals_total", { reason: "conflict" })).toBe(0);
    const ends = ["granted", "throttled", "timeout", "canceled"].map((end) =>
      value("slotkeeper_sessions_ended_total", { end }),
    );
    const { started, waiting } = {
      started: value("slotkeeper_sessions_started_total"),
      waiting: sumOf(await page(fixture), "slotkeeper_waiters"),
    };
    expect(ends.reduce((all, count) => all + count, 0) + waiting).toBe(started);
  });

  it("exposes slots, limits, waiters, the oldest wait and the breaker by host, and rejects by reason", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, globalMaxWaiters: 1 } } });
    await fixture.take({ ipBucket: "a" });
    await fixture.acquire({ ipBucket: "b" });
    await fixture.acquire({ ipBucket: "c" });
    await fixture.request("POST", "/api/v0/hosts/shut.example/breaker?new=true", { body: '{"state":"open"}' });
    const { value } = await page(fixture);
    const host = { host: "example.com" };
    expect(value("slotkeeper_slots_in_use", host)).toBe(1);
    expect(value("slotkeeper_slots_limit", host)).toBe(1);
    expect(value("slotkeeper_waiters", host)).toBe(1);
    expect(value("slotkeeper_oldest_wait_seconds", host)).toBeGreaterThan(0);
    expect(value("slotkeeper_breaker_state", host)).toBe(0);
    expect(value("slotkeeper_breakers_open")).toBe(1);
    expect(value("slotkeeper_rejects_total", { reason: "overloaded" })).toBe(1);
    expect(value("slotkeeper_host_rejects_total", host)).toBe(1);
  });

  it("exposes what is left of each budget, how it refills, and a debt as a number below 0", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerIp: -1, budgets: TOKENS } } });
    const { slotToken } = await fixture.take({ cost: { tokens: 100 } });
    const of = { host: "example.com", budget: "tokens" };
    const left = async () => Math.floor((await page(fixture)).value("slotkeeper_budget_available_units", of));
    expect(await left()).toBe(400);
    await fixture.release(slotToken, { used: { tokens: 800 } });
    expect(await left()).toBe(-300);
    const { value } = await page(fixture);
    expect(value("slotkeeper_budget_burst_units", of)).toBe(500);
    expect(value("slotkeeper_budget_refill_units_per_second", of)).toBe(0.1);
  });

  it("exposes the slots and the waiting sessions of each class of a host", async () => {
    const fairQueue = { maxSlotPerHost: 3, maxSlotPerIp: -1, classes: { chat: { floor: 1 }, batch: {} } };
    const fixture = await startFixture({ config: { fairQueue } });
    await fixture.take({ class: "chat", width: 2 });
    await fixture.take();
    await fixture.acquire({ class: "batch" });
    const { value } = await page(fixture);
    const of = (name: string) => ({ host: "example.com", class: name });
    const inUse = ["chat", "batch", "default"].map((name) => value("slotkeeper_class_slots_in_use", of(name)));
    const waiting = ["chat", "batch", "default"].map((name) => value("slotkeeper_class_waiters", of(name)));
    expect([inUse, waiting]).toEqual([
      [2, 0, 1],
      [0, 1, 0],
    ]);
  });

  it("counts by host what was used beyond the largest debt of a budget", async () => {
    const fairQueue = { budgets: { tokens: { limit: 10, perSeconds: 3_600 } } };
    const fixture = await startFixture({ config: { fairQueue } });
    const { slotToken } = await fixture.take({ cost: { tokens: 10 } });
    await fixture.release(slotToken, { used: { tokens: 100 } });
    const units = (await page(fixture)).value("slotkeeper_budget_excess_units_total", { host: "example.com" });
    expect(units).toBeCloseTo(80, 0);
  });

  it("serves what it has while the store cannot be read, and counts the store's errors", async () => {
    class Broken extends MemoryStore {
      override totals(): Promise<never> {
        return Promise.reject(new Error("the store is down"));
      }
    }
    const fixture = await startFixture({ open: openWith((clock) => new Broken({ clock })) });
    await fixture.take();
    await page(fixture);
    const { value, families } = await page(fixture);
    expect(value("slotkeeper_sessions_started_total")).toBe(1);
    expect(value("slotkeeper_store_errors_total", { operation: "totals" })).toBeGreaterThan(0);
    expect(value("slotkeeper_store_errors_total", { operation: "commit" })).toBe(0);
    expect(families.has("slotkeeper_slots_in_use")).toBe(false);
  });

  it("counts commits that lost against another instance, and the waiters of the whole fleet", async () => {
    const [one, two] = (await startFleet(2, { fairQueue: { maxSlotPerHost: 1 } })) as [Fixture, Fixture];
    const slot = await one.take({ ipBucket: "a" });
    const waiting = [one, two, two].map((fixture, at) => fixture.acquire({ ipBucket: `w${at}` }));
    await Promise.all(waiting);
    for (const fixture of [one, two]) {
      const waiters = async () => (await page(fixture)).value("slotkeeper_waiters", { host: "example.com" });
      // An arrival without a free slot is committed together with the next input.
      await expect.poll(waiters).toBe(3);
      const { value } = await page(fixture);
      expect(value("slotkeeper_slots_in_use", { host: "example.com" })).toBe(1);
    }
    await one.release(slot.slotToken);
    // Its book is older than the waiter of the other instance, so its first commit is refused.
    await two.acquire({ ipBucket: "last" });
    const refused = await Promise.all(
      [one, two].map(async (fixture) =>
        (await page(fixture)).value("slotkeeper_commit_refusals_total", { reason: "conflict" }),
      ),
    );
    expect(refused.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
  });

  it("escapes names, and separates hosts with the same name", async () => {
    const fixture = await startFixture();
    for (const hostname of ['quote"d', "back\\slash", "other hosts"]) await fixture.take({ hostname });
    // Names that look like the suffix that distinguishes two hosts with the same name.
    const hash = createHash("sha256").update("twin").digest("hex");
    for (const names of [{ hostnameHash: "twin" }, { hostname: `twin (${hash})` }, { hostname: "twin" }]) {
      await fixture.take({ hostname: undefined, ...names });
    }
    const { families } = await page(fixture);
    const labels = families.get("slotkeeper_host_grants_total")?.series.map(({ labels }) => labels["host"]) ?? [];
    expect(new Set(labels).size).toBe(labels.length);
    expect(labels).toEqual(expect.arrayContaining(['quote"d', "back\\slash", "twin", "other hosts"]));
    expect(labels).toHaveLength(7);
  });
});

describe("with 100,000 hosts", () => {
  it("the page has as many series as with a hundred and one, and every sum is correct", async () => {
    const sizes: number[] = [];
    for (const hosts of [101, 100_000]) {
      const { text, held } = await pageOfMany(hosts);
      const parsed = parsePage(text);
      sizes.push([...parsed.families.values()].reduce((all, { series }) => all + series.length, 0));
      expect(sumOf(parsed, "slotkeeper_slots_in_use")).toBe(held);
      expect(sumOf(parsed, "slotkeeper_host_grants_total")).toBe(held);
      expect(parsed.value("slotkeeper_hosts")).toBe(hosts);
      expect(parsed.families.get("slotkeeper_slots_in_use")?.series).toHaveLength(101);
    }
    expect(sizes[1]).toBe(sizes[0]);
  });

  async function pageOfMany(hosts: number): Promise<{ text: string; held: number }> {
    const clock = new VirtualClock();
    const log = { debug() {}, info() {}, warn() {}, error() {}, audit() {}, isOn: () => false };
    const live = { hosts: new HostSettings(loadConfig({}), (name) => name), config: { version: "default" } };
    const store = new MemoryStore({ clock, hosts: await oneSlotEach(hosts, clock) });
    const telemetry = new Telemetry({ store, clock, log, instance: "one", live: () => live });
    const queue = engineOn(telemetry.store, clock);
    for (let at = 0; at < hosts; at++) {
      const host = `h${at}`;
      telemetry.observe({ type: "granted", host, bucket: "b", session: host, slot: at, waitedMs: 1 });
    }
    const context: ScrapeSources = {
      queue,
      telemetry,
      log: { ...log, lost: 0 },
      live,
      refusals: new Refusals(log),
      connections: () => 0,
      version: "0.0.0",
      held: { size: 0 },
      isOnFallback: () => false,
      opened: {},
      readiness: { read: async () => ({ isReady: true, weaknesses: [] }) },
    };
    const text = await scrape(context);
    queue.close();
    return { text, held: hosts };
  }
});

function engineOn(store: HostStore, clock: VirtualClock): FairQueue {
  let ids = 0;
  const newName = () => `name-${ids++}`;
  return new FairQueue({ store, clock, newSessionId: newName, newSecret: newName, instance: "one" });
}

/** Hosts with one slot in use: copies of the state that an engine left for one of them. */
async function oneSlotEach(hosts: number, clock: VirtualClock): Promise<KeptHost[]> {
  const store = new MemoryStore({ clock });
  const queue = engineOn(store, clock);
  const granted = queue.begin({ host: "h", bucket: "b", waitMs: 1_000 });
  await clock.run(1);
  expect((await granted).result).toBe("granted");
  queue.close();
  const [kept] = [...store.images()] as [KeptHost];
  return Array.from({ length: hosts }, (_, at) => ({ ...kept, host: `h${at}` }));
}

describe("documents that name metrics", () => {
  it("docs/reference/metrics.md matches the catalogue", () => {
    const path = "docs/reference/metrics.md";
    if (process.env["WRITE_DOCUMENTS"] !== undefined) writeFileSync(fileOf(path), metricsReference());
    const layout = (text: string) =>
      text
        .replaceAll(/\s+/g, " ")
        .replaceAll(/-{3,}/g, "---")
        .split(/ ?\| ?/);
    expect(layout(read(path))).toEqual(layout(metricsReference()));
  });

  const known = new Set(
    CATALOGUE.flatMap(({ name, kind }) =>
      kind === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );

  it.each(["deploy/grafana/slotkeeper.json", "deploy/prometheus/alerts.yml"])(
    "%s names only existing metrics",
    (path) => {
      const used = namesIn(read(path));
      expect(used.size).toBeGreaterThan(5);
      expect([...used].filter((name) => !known.has(name))).toEqual([]);
      expect(namesIn("rate(slotkeeper_colour_total[5m])")).toEqual(new Set(["slotkeeper_colour_total"]));
    },
  );

  it("the dashboard shows every metric except those for alerts and joins", () => {
    const shown = new Set([
      ...namesIn(read("deploy/grafana/slotkeeper.json")),
      ...namesIn(read("deploy/prometheus/alerts.yml")),
    ]);
    const unshown = CATALOGUE.filter(
      ({ name }) => ![name, `${name}_bucket`, `${name}_count`].some((one) => shown.has(one)),
    );
    expect(unshown.map(({ name }) => name)).toEqual([]);
  });

  it("the dashboard is valid for Grafana: panels with targets, no two in one place", () => {
    const { panels, uid } = JSON.parse(read("deploy/grafana/slotkeeper.json")) as {
      uid: string;
      panels: {
        id: number;
        title: string;
        type: string;
        gridPos: Record<string, number>;
        targets?: { expr: string }[];
      }[];
    };
    expect(uid).toBe("slotkeeper");
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ gridPos: { x, y } }) => `${x},${y}`)).size).toBe(panels.length);
    for (const { title, type, targets = [] } of panels) {
      if (type !== "row")
        expect([title, targets.every(({ expr }) => balanced(expr)), targets.length > 0]).toEqual([title, true, true]);
    }
  });

  it("every alert has an expression, a severity and what to do", () => {
    const alerts = read("deploy/prometheus/alerts.yml")
      .split(/^ {6}- alert: /m)
      .slice(1);
    expect(alerts.length).toBeGreaterThan(5);
    for (const alert of alerts) {
      for (const part of [
        /^ {8}expr: \S/m,
        /^ {10}severity: (page|ticket)$/m,
        /^ {10}summary: \S/m,
        /^ {10}runbook: docs\/guides\/operate\.md#\S/m,
      ]) {
        expect([alert.split("\n")[0], part.test(alert)]).toEqual([alert.split("\n")[0], true]);
      }
      const anchor = /runbook: docs\/guides\/operate\.md#(\S+)/.exec(alert)?.[1] ?? "";
      const headings = [...read("docs/guides/operate.md").matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) =>
        text
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, "")
          .replaceAll(" ", "-"),
      );
      expect(headings).toContain(anchor);
    }
  });
});

function namesIn(text: string): Set<string> {
  return new Set([...text.matchAll(/\b(?:slotkeeper|process)_[a-z_]+\b/g)].map(([name]) => name));
}

function balanced(text: string): boolean {
  return text.split("(").length === text.split(")").length && text.split("{").length === text.split("}").length;
}

function sumOf({ families }: Page, name: string): number {
  return (families.get(name)?.series ?? []).reduce((all, { value }) => all + value, 0);
}
