import { explore, simulate } from "slotkeeper/effects";
import { describe, expect, it } from "vitest";
import { crawl, hourOfCrawling, main, simulatedPage } from "../../../../examples/src/crawler.ts";

describe("the crawler of the guide", () => {
  it("crawls for an hour of virtual time, and leaks nothing", () => {
    const { value, permitsLeaked, leftOver } = simulate(crawl(hourOfCrawling), { resolver: simulatedPage });
    expect(value.tookMs).toBeGreaterThan(3_600_000);
    expect(value.pages.length + value.failed.length).toBe(1_000);
    expect(value.failed.length).toBeGreaterThan(0);
    expect({ permitsLeaked, leftOver }).toEqual({ permitsLeaked: [], leftOver: [] });
  });

  it("is never impolite, under any of 200 interleavings", () => {
    const options = { ...hourOfCrawling, maxPages: 30, atOnce: 2 };
    let busy = 0;
    let most = 0;
    const hosts = new Set<string>();
    const found = explore(
      function* () {
        busy = 0;
        hosts.clear();
        return yield* crawl(options);
      },
      {
        runs: 200,
        resolver: (request) =>
          (function* () {
            const { host } = new URL(request.label as string);
            if (hosts.has(host)) throw new RangeError(`two requests to ${host}`);
            hosts.add(host);
            most = Math.max(most, ++busy);
            try {
              return yield* simulatedPage(request);
            } finally {
              busy--;
              hosts.delete(host);
            }
          })(),
        check: ({ value, log }) =>
          value.pages.length + value.failed.length === 30 && !log.some((line) => line.includes("RangeError")),
      },
    );
    expect(found.failure?.report).toBeUndefined();
    expect(most).toBe(2);
  });

  it("runs for real, unchanged", async () => {
    const lines: string[] = [];
    await main((line) => lines.push(line));
    expect(lines.at(-1)).toBe("For real: 38 pages, 2 failures.");
  });
});
