import { writeFileSync } from "node:fs";
import { MemoryStore } from "@slotkeeper/queue";
import { describe, expect, it, vi } from "vitest";
import { configFile, openWith, startFixture, stopFixture } from "./service-fixture.ts";

/** A service whose store counts its sweeps. `fails` selects the sweeps that fail. */
async function start(cleanup: object, fails: (sweep: number) => boolean = () => false) {
  let sweeps = 0;
  class Counting extends MemoryStore {
    override cleanup(...request: Parameters<MemoryStore["cleanup"]>): ReturnType<MemoryStore["cleanup"]> {
      if (fails(++sweeps)) return Promise.reject(new Error("the store is down"));
      return super.cleanup(...request);
    }
  }
  const open = openWith((clock) => new Counting({ clock }));
  const configOf = (changed: object) => JSON.stringify({ fairQueue: { cleanup: changed } });
  const file = configFile(configOf(cleanup));
  const fixture = await startFixture({ open, file });
  const reconfigure = (changed: object) => {
    writeFileSync(file, configOf(changed));
    return fixture.service.refresh();
  };
  return { fixture, reconfigure, sweeps: () => sweeps };
}

describe("the cleanup timer", () => {
  it("sweeps the store at every interval", async () => {
    const { sweeps } = await start({ intervalSeconds: 0.01 });
    await expect.poll(sweeps).toBeGreaterThan(2);
  });

  it("continues after a failed sweep, and logs the failure", async () => {
    const { fixture, sweeps } = await start({ intervalSeconds: 0.01 }, (sweep) => sweep === 1);
    await expect.poll(sweeps).toBeGreaterThan(2);
    expect(fixture.logged.filter((line) => line.includes("cleanup failed"))).toHaveLength(1);
  });

  it("follows a refreshed configuration", async () => {
    const { reconfigure, sweeps } = await start({ enabled: false });
    await reconfigure({ enabled: true, intervalSeconds: 0.01 });
    // One of them belongs to the refresh itself.
    await expect.poll(sweeps).toBeGreaterThan(2);
  });

  it("runs every 30 minutes by default, and not at all if disabled", async () => {
    const set = vi.spyOn(globalThis, "setInterval");
    const minutes = () => set.mock.calls.filter(([, delay]) => (delay ?? 0) >= 60_000).map(([, delay]) => delay);
    await stopFixture((await start({})).fixture);
    expect(minutes()).toContain(1_800_000);
    set.mockClear();
    await stopFixture((await start({ enabled: false })).fixture);
    expect(minutes()).not.toContain(1_800_000);
  });
});
