import { fillQueue, holdOne } from "@slotkeeper/testkit/load";
import { describe, expect, it } from "vitest";
import { openPage, startService } from "./dashboard-fixture.ts";

describe("what the page loads", () => {
  it("is at most 150 kB packed, all from the service itself, and breaks no rule of its policy", async () => {
    const service = await startService();
    const { page, requests, complaints } = await openPage(service.url);
    await page.getByRole("heading", { name: "No slot has been requested yet" }).waitFor();
    expect(requests.filter((url) => !url.startsWith(service.url))).toEqual([]);
    expect(complaints).toEqual([]);
    const files = await page.evaluate(() =>
      ["navigation", "resource"].flatMap((kind) =>
        (performance.getEntriesByType(kind) as PerformanceResourceTiming[])
          .filter(({ name }) => !name.includes("/api/"))
          .map(({ name, encodedBodySize, decodedBodySize }) => ({ name, encodedBodySize, decodedBodySize })),
      ),
    );
    expect(files.length).toBeGreaterThanOrEqual(3);
    const total = files.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
    expect(total).toBeGreaterThan(10_000);
    expect(total).toBeLessThanOrEqual(150 * 1000);
    for (const { name, encodedBodySize, decodedBodySize } of files.filter(({ name }) => /\.(?:js|css)$/.test(name))) {
      expect([name, encodedBodySize < decodedBodySize / 2]).toEqual([name, true]);
    }
  });

  it("is not loaded again on the next visit, but for the page itself", async () => {
    const service = await startService();
    const { page } = await openPage(service.url);
    await page.getByRole("heading", { name: "No slot has been requested yet" }).waitFor();
    await page.goto("about:blank");
    await page.goto(service.url);
    await page.getByRole("heading", { name: "No slot has been requested yet" }).waitFor();
    const sizes = await page.evaluate(() =>
      (performance.getEntriesByType("resource") as PerformanceResourceTiming[])
        .filter(({ name }) => name.includes("/assets/"))
        .map(({ transferSize }) => transferSize),
    );
    expect(sizes.every((size) => size === 0)).toBe(true);
    expect(sizes.length).toBeGreaterThan(0);
  });

  it("cannot run a script or a style that is injected into the page", async () => {
    const service = await startService();
    const { page, complaints } = await openPage(service.url);
    await page.getByRole("heading", { name: "No slot has been requested yet" }).waitFor();
    await page.evaluate(() => {
      const script = document.createElement("script");
      try {
        script.textContent = "document.title = 'owned'";
        document.body.append(script);
      } catch {
        // Trusted types refuse it before it is in the page.
      }
      try {
        document.body.insertAdjacentHTML("beforeend", "<b onclick='1' style='color:red'>x</b>");
      } catch {
        document.title += "!";
      }
    });
    expect(await page.title()).toBe("Slotkeeper!");
    expect(complaints.length).toBeGreaterThan(0);
  });
});

describe("a service with many hosts and waiters", () => {
  const HOSTS = 300;
  const WAITERS = 1_500;
  const LIMITS = { maxWaitersPerHost: 0, globalMaxWaiters: -1, maxWaitMs: 600_000, sessionIdleSeconds: 600 };

  /** `npm run bench:dashboard` measures how fast they scroll. */
  it("has only the rows in view in the document, and reads the end of a long queue when it comes into view", async () => {
    const service = await startService({ fairQueue: LIMITS });
    await holdOne({ url: service.url }, HOSTS - 1);
    await fillQueue({ url: service.url }, "crowded.example", WAITERS);
    const { page } = await openPage(`${service.url}/#/hosts`);
    await page.getByText(`${HOSTS} hosts`).waitFor();
    expect(await page.getByRole("row").count()).toBeLessThan(60);
    await page.getByRole("searchbox").fill("crowded");
    await page.getByRole("link", { name: "crowded.example" }).click();
    await page.getByText("1,500 at this instance").waitFor();
    expect(await page.locator(".queue").getByRole("row").count()).toBeLessThan(60);
    await page.locator(".queue .rows").evaluate((element) => element.scrollTo(0, 1e9));
    await page.getByRole("button", { name: `Why does the session at position ${WAITERS} wait?` }).waitFor();
    expect(await page.locator(".queue").getByRole("row").count()).toBeLessThan(60);
  });
});
