import { MemoryStore } from "@slotkeeper/queue";
import { Telemetry } from "@slotkeeper/server/internals";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { realClock } from "slotkeeper";
import { expect, it } from "vitest";
import { parsePage } from "../metrics/parse-page.ts";
import { openWith, startFixture } from "../service-fixture.ts";

it("a store whose clock is ahead shows in the metric, and slots are granted as usual", async () => {
  const clock = { ...realClock, now: () => realClock.now() + 5_000 };
  const fixture = await startFixture({ open: openWith(() => new MemoryStore({ clock, isShared: true })) });
  await fixture.take();
  const page = parsePage((await fixture.request("GET", "/metrics")).text);
  expect(page.value("slotkeeper_clock_skew_seconds")).toBeCloseTo(5, 0);
});

it("a difference of more than a second is logged once as a warning, not with every check", async () => {
  const clock = new VirtualClock();
  const warned: object[] = [];
  const warn = (message: string, fields: object = {}) => void warned.push({ message, ...fields });
  const log = { debug() {}, info() {}, warn, error() {}, audit() {}, isOn: () => false };
  const store = new MemoryStore({ clock, isShared: true });
  const live = () => ({ hosts: undefined as never, config: { version: "default" } });
  const telemetry = new Telemetry({ store, clock, log, instance: "one", live });
  let skewMs = 900;
  telemetry.start({ now: () => Date.now() + skewMs } as never);
  await clock.run(30_000);
  expect(warned).toEqual([]);
  skewMs = -90_000;
  await clock.run(60_000);
  expect(warned).toEqual([expect.objectContaining({ skewMs: expect.any(Number) })]);
});
