import * as fc from "fast-check";
import { FakeClock, settled } from "slotkeeper/testing";
import { type GovernorEvent, type MediaEvent, MediaSlots } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
import { patience, runs } from "../long-mode.ts";
import { outcome } from "../outcome.ts";
import { FakeMemory, GB, MB } from "./fake-memory.ts";
import { useTransferWorld } from "./transfer-world.ts";

const world = useTransferWorld();
const EVERY_MS = 1000;
const isGoverned = (event: MediaEvent): event is GovernorEvent => event.type === "governed";

/** 8 GB: 30 uploads, 60 chunks. */
function governed(probe: FakeMemory, onEvent?: (event: MediaEvent) => void) {
  const slots = world().media({ availableGb: 8, governor: { everyMs: EVERY_MS }, probe, onEvent });
  const limits = () => {
    const { globalUploads, globalChunks } = slots.config().current;
    return [globalUploads, globalChunks];
  };
  /** Sets the share of memory in use, lets a period pass, returns the limits. */
  const period = (load: number) => {
    probe.rssBytes = load * 8 * GB;
    world().clock.advance(EVERY_MS);
    return limits();
  };
  return { slots, limits, period };
}

describe("a curve of memory", () => {
  test("above the high water mark halves the limits every period, down to the minimum", () => {
    const { limits, period } = governed(new FakeMemory({ rssBytes: 0 }));
    expect(limits()).toEqual([30, 60]);
    const fall = [0.86, 0.9, 0.99, 1.2, 0.9, 0.9].map(period);
    expect(fall).toEqual([
      [15, 30],
      [7, 15],
      [3, 7],
      [2, 4],
      [2, 4],
      [2, 4],
    ]);
  });

  test("below the low water mark adds one upload and two chunks every period, up to what was calculated", () => {
    const { period } = governed(new FakeMemory({ rssBytes: 0 }));
    for (let i = 0; i < 5; i++) period(0.95);
    expect([0.69, 0.5, 0.1].map(period)).toEqual([
      [3, 6],
      [4, 8],
      [5, 10],
    ]);
    for (let i = 0; i < 24; i++) period(0.1);
    expect([period(0.1), period(0.1), period(0)]).toEqual([
      [30, 60],
      [30, 60],
      [30, 60],
    ]);
  });

  test("between the marks, and on them, changes nothing", () => {
    const { period } = governed(new FakeMemory({ rssBytes: 0 }));
    period(0.9);
    expect([0.85, 0.8, 0.7].map(period)).toEqual([
      [15, 30],
      [15, 30],
      [15, 30],
    ]);
  });

  test("with marks of one's own goes by those", () => {
    const probe = new FakeMemory({ rssBytes: 4 * GB });
    const slots = world().media({ availableGb: 8, governor: { everyMs: 10, highWater: 0.4, lowWater: 0.2 }, probe });
    world().clock.advance(10);
    expect(slots.config().current.globalUploads).toBe(15);
  });

  test("lowers the limits per user along, in proportion, and raises them again", () => {
    const { slots, period } = governed(new FakeMemory({ rssBytes: 0 }));
    const perUser = () => {
      const { perUserUploads, perUserChunks } = slots.config().current;
      return [perUserUploads, perUserChunks];
    };
    expect(perUser()).toEqual([3, 6]);
    period(0.9);
    expect(perUser()).toEqual([2, 3]);
    for (let i = 0; i < 15; i++) period(0.1);
    expect(perUser()).toEqual([3, 6]);
  });

  test("holds a user to the lowered limit, not only on paper", () => {
    const { slots, period } = governed(new FakeMemory({ rssBytes: 0 }));
    period(0.9);
    const held = [slots.tryAcquireUpload("ann"), slots.tryAcquireUpload("ann")];
    expect(slots.tryAcquireUpload("ann")).toBeUndefined();
    const other = slots.tryAcquireUpload("bob");
    for (const slot of [...held, other]) expect(slot?.release()).toBe(true);
  });

  test("leaves fallbacks that are below the minimum where they are", () => {
    const probe = new FakeMemory({ rssBytes: 8 * GB });
    const fallbacks = { fallbackGlobalUploads: 1, fallbackGlobalChunks: 3 };
    const slots = world().media({ memoryBased: false, ...fallbacks, availableGb: 8, governor: {}, probe });
    world().clock.advance(5000);
    expect(slots.config().current).toEqual({ globalUploads: 1, globalChunks: 3, perUserUploads: 1, perUserChunks: 3 });
  });
});

test("no holder is evicted; no other caller gets a slot until the holders are fewer than the limit", async () => {
  const probe = new FakeMemory({ rssBytes: 0 });
  const { slots, period } = governed(probe);
  const held = await Promise.all(Array.from({ length: 30 }, (_, i) => slots.acquireUpload(`user ${i}`)));
  for (let i = 0; i < 4; i++) period(0.95);
  expect(slots.config()).toMatchObject({ current: { globalUploads: 2 }, use: { uploads: { inUse: 30 } } });
  expect(held.some((slot) => slot.released)).toBe(false);
  const late = outcome(slots.acquireUpload("late"));
  for (const slot of held.slice(0, 28)) slot.release();
  await settled();
  expect(late.status).toBe("pending");
  held[28]?.release();
  await settled();
  expect(late.status).toBe("fulfilled");
  late.value.release();
  held[29]?.release();
});

test("raising the limits serves the waiters at once", async () => {
  const { slots, period } = governed(new FakeMemory({ rssBytes: 0 }));
  for (let i = 0; i < 4; i++) period(0.95);
  const waits = ["a", "b", "c"].map((user) => outcome(slots.acquireUpload(user)));
  await settled();
  expect(waits.map((wait) => wait.status)).toEqual(["fulfilled", "fulfilled", "pending"]);
  period(0.1);
  await settled();
  for (const wait of waits) wait.value.release();
});

describe("the governor's state", () => {
  test("is in config(), from the first moment on", () => {
    const { slots, period } = governed(new FakeMemory({ rssBytes: 0 }));
    const marks = { everyMs: EVERY_MS, highWater: 0.85, lowWater: 0.7, limitBytes: 8 * GB };
    const nothing = { rssBytes: undefined, load: undefined, sampledAt: undefined };
    expect(slots.config().governor).toEqual({ ...marks, ...nothing, pressure: "unknown", samples: 0 });
    period(0.75);
    expect(slots.config().governor).toEqual({
      ...marks,
      pressure: "steady",
      rssBytes: 6 * GB,
      load: 0.75,
      samples: 1,
      sampledAt: world().clock.now(),
    });
  });

  test("is in events: one for every change of limits or of pressure, none else", () => {
    const events: MediaEvent[] = [];
    const { period } = governed(new FakeMemory({ rssBytes: 0 }), (event) => events.push(event));
    for (const load of [0.5, 0.5, 0.8, 0.8, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.6]) period(load);
    const reported = events.filter(isGoverned).map(({ governor, from, to }) => {
      return `${governor.pressure} ${from.globalUploads}>${to.globalUploads} ${from.globalChunks}>${to.globalChunks}`;
    });
    expect(reported).toEqual([
      "low 30>30 60>60",
      "steady 30>30 60>60",
      "high 30>15 60>30",
      "high 15>7 30>15",
      "high 7>3 15>7",
      "high 3>2 7>4",
      "low 2>3 4>6",
    ]);
    expect(events.filter(({ type }) => type === "resized")).toHaveLength(10);
  });

  test("is unknown, and nothing is changed, while the host does not answer", () => {
    const probe = new FakeMemory({ rssBytes: 0 });
    const { slots, limits, period } = governed(probe);
    period(0.9);
    const answers: (() => number | undefined)[] = [
      () => undefined,
      () => Number.NaN,
      () => {
        throw new Error("no such file");
      },
    ];
    for (const answer of answers) {
      probe.rss = answer;
      world().clock.advance(EVERY_MS);
      expect(slots.config().governor).toMatchObject({ pressure: "unknown", rssBytes: undefined, load: undefined });
      expect(limits()).toEqual([15, 30]);
    }
    probe.rss = () => 0;
    expect(period(0)).toEqual([16, 32]);
  });

  test("a listener that throws changes nothing", () => {
    const { period } = governed(new FakeMemory({ rssBytes: 0 }), () => {
      throw new Error("listener");
    });
    expect([period(0.9), period(0.9)]).toEqual([
      [15, 30],
      [7, 15],
    ]);
  });
});

describe("the governor's timer", () => {
  test("is one, keeps no process alive, and goes with close", () => {
    const { clock } = world();
    const { slots, period } = governed(new FakeMemory({ rssBytes: 0 }));
    expect([clock.pending, clock.keepingAlive]).toEqual([1, 0]);
    period(0.9);
    expect([clock.pending, clock.keepingAlive]).toEqual([1, 0]);
    slots.close();
    expect(clock.pending).toBe(0);
  });

  test("goes with a close from within its own event, too", () => {
    const probe = new FakeMemory({ rssBytes: 8 * GB });
    const slots: MediaSlots = world().media({ availableGb: 8, governor: {}, probe, onEvent: () => slots.close() });
    world().clock.advance(10_000);
    expect([slots.config().governor?.samples, world().clock.pending]).toEqual([1, 0]);
  });
});

test(
  "GOVLIMIT1, GOVLIMIT2, GOVERN1: on any curve, limits stay in their bounds and change once a period at most, by half or by one step",
  patience,
  () => {
    const curve = fc.array(
      fc.record({ load: fc.double({ min: 0, max: 1.5, noNaN: true }), ms: fc.nat({ max: 2500 }) }),
    );
    const gb = fc.double({ min: 0.5, max: 20, noNaN: true });
    const property = fc.property(curve, gb, (curve, availableGb) => {
      const clock = new FakeClock();
      const probe = new FakeMemory({ rssBytes: 0 });
      const changes: GovernorEvent[] = [];
      const onEvent = (event: MediaEvent) => {
        if (isGoverned(event) && event.from.globalChunks !== event.to.globalChunks) changes.push(event);
      };
      const slots = new MediaSlots({ availableGb, governor: { everyMs: EVERY_MS }, probe, clock, onEvent });
      const { globalUploads, globalChunks } = slots.config().limits;
      for (const { load, ms } of curve) {
        probe.rssBytes = load * availableGb * GB;
        clock.advance(ms);
      }
      slots.close();
      changes.forEach(({ at, from, to, governor: { load = 0 } }, i) => {
        expect(at - (changes[i - 1]?.at ?? 0)).toBeGreaterThanOrEqual(EVERY_MS);
        const isHigh = load > 0.85;
        expect(isHigh || load < 0.7).toBe(true);
        expect(to.globalUploads).toBe(
          isHigh ? Math.max(2, Math.floor(from.globalUploads / 2)) : Math.min(globalUploads, from.globalUploads + 1),
        );
        expect(to.globalChunks).toBe(
          isHigh ? Math.max(4, Math.floor(from.globalChunks / 2)) : Math.min(globalChunks, from.globalChunks + 2),
        );
        expect(to.perUserUploads).toBeLessThanOrEqual(to.globalUploads);
        expect(to.perUserUploads).toBeGreaterThanOrEqual(1);
      });
    });
    fc.assert(property, runs(300));
  },
);

/** A process whose memory follows from what it does: uploads of 20 MB each, and another part that grows and shrinks. */
async function simulate(hasGovernor: boolean) {
  const clock = new FakeClock();
  const probe = new FakeMemory({ rssBytes: 0 });
  const governor = hasGovernor ? { everyMs: 100 } : undefined;
  const slots = new MediaSlots({
    memoryBased: false,
    fallbackGlobalUploads: 30,
    availableGb: 1,
    governor,
    probe,
    clock,
  });
  let [otherMb, mostMb, user] = [100, 0, 0];
  const upload = () =>
    slots.runUpload(`user ${user++}`, () => new Promise<void>((resolve) => void clock.setTimer(resolve, 150)));
  const leastSlots: number[] = [];
  for (let atMs = 0; atMs < 20_000; atMs += 50) {
    const { inUse, waiting } = slots.config().use.uploads;
    for (let asked = inUse + waiting; asked < 50; asked++) void upload().catch(() => {});
    await settled();
    // Grows by 70 MB a second between 2 and 10 s, gives it all back after 12 s.
    if (atMs >= 2000 && atMs < 10_000) otherMb += 3.5;
    if (atMs === 12_000) otherMb = 100;
    probe.rssBytes = (otherMb + slots.config().use.uploads.inUse * 20) * MB;
    mostMb = Math.max(mostMb, probe.rssBytes / MB);
    leastSlots.push(slots.config().current.globalUploads);
    await clock.advanceAsync(50);
  }
  slots.close();
  await clock.advanceAsync(1000);
  return { mostMb, leastSlots };
}

describe("a process under load while another part of it grows", () => {
  test("stays within its memory, and is back at full speed after", async () => {
    const { mostMb, leastSlots } = await simulate(true);
    expect(mostMb).toBeLessThan(1024);
    expect(Math.min(...leastSlots)).toBeLessThan(15);
    expect(leastSlots.at(-1)).toBe(30);
  });

  test("control: without the governor it does not", async () => {
    const { mostMb } = await simulate(false);
    expect(mostMb).toBeGreaterThan(1024);
  });
});
