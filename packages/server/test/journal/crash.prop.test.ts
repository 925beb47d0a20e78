import * as fc from "fast-check";
import { FakeClock } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";
import { MemoryDisk } from "./memory-disk.ts";
import { type KnownEvent, openOn, type Plan, POLICY, record, type Step } from "./recorded-history.ts";

const START = 1_700_000_000_000;

/** Checks a store that is opened on the first `cut` bytes against what clients knew at that time. */
async function check(content: Uint8Array, cut: number, known: readonly KnownEvent[], now: number): Promise<void> {
  const clock = new FakeClock(now);
  const { calls, close } = await openOn(new MemoryDisk(content.slice(0, cut)), clock, "second");
  const events = known.filter(({ length }) => length <= cut).map(({ event }) => event);
  // An end that was requested by then may or may not be there. One that was requested later cannot be there.
  const isEndAsked = (session: string) =>
    events.some((event) => event.kind === "end-asked" && event.session === session);
  const endOf = (session: string) =>
    events.find((event) => event.session === session && event.kind !== "granted" && event.kind !== "end-asked")?.kind;
  let lastFence = 0;
  for (const event of events) {
    if (event.kind !== "granted") continue;
    const { session, slotToken, fence } = event;
    lastFence = Math.max(lastFence, fence);
    const end = endOf(session);
    if (end !== undefined) expect(await calls.renew(slotToken), "an ended slot has no holder").toBeUndefined();
    if (end === "released" || end === "withdrawn") {
      expect(await calls.ask(session), "an ended session is granted nothing").toMatchObject({ status: "ENDED" });
    }
    if (!isEndAsked(session)) expect(await calls.grant(session)).toMatchObject({ slotToken, fence });
  }
  for (const bucket of ["a", "b", "c", "d"]) {
    for (let n = 0; n < 3; n++) {
      const fresh = await calls.grant(`${bucket}-fresh${n}`);
      if (fresh !== undefined) expect(fresh.fence).toBeGreaterThan(lastFence);
    }
  }
  const host = await calls.snapshot();
  expect(host?.inFlight).toBe(POLICY.slots);
  for (const { inFlight } of host?.buckets ?? []) expect(inFlight).toBeLessThanOrEqual(POLICY.slotsPerBucket);
  await close();
  expect(clock.pending).toBe(0);
}

const steps = fc.record({
  step: fc.constantFrom<Step>("acquire", "acquire", "acquire", "release", "withdraw", "renew", "undo", "time"),
  pick: fc.nat({ max: 11 }),
});
const plans = fc.array(fc.array(steps, { minLength: 1, maxLength: 4 }), { minLength: 4, maxLength: 24 });

async function recorded(plan: Plan, compactAfterBytes?: number) {
  const disk = new MemoryDisk();
  const clock = new FakeClock(START);
  const known = await record(disk, clock, plan, compactAfterBytes);
  return { content: disk.content as Uint8Array, known, now: clock.now() };
}

function firstFrameEnd(content: Uint8Array): number {
  const text = Buffer.from(content).toString("latin1");
  const second = text.indexOf("\n=", text.indexOf("\n=") + 1);
  return second === -1 ? text.length : second + 1;
}

/** Every byte near the border of a frame, and every 29th elsewhere: cuts inside a frame are all alike. */
function cutsOf(content: Uint8Array): number[] {
  const text = Buffer.from(content).toString("latin1");
  const borders = [text.length, ...Array.from(text.matchAll(/^=/gm), ({ index }) => index)];
  const from = firstFrameEnd(content);
  const isNear = (at: number) => borders.some((border) => Math.abs(border - at) <= 2);
  return Array.from({ length: text.length - from + 1 }, (_, n) => from + n).filter((at) => isNear(at) || at % 29 === 0);
}

describe("a process that dies", () => {
  test("at any place of the journal: nothing is granted twice, nothing answered is lost, fences grow", async () => {
    const plan: Plan = [
      [
        { step: "acquire", pick: 0 },
        { step: "acquire", pick: 1 },
      ],
      [
        { step: "acquire", pick: 1 },
        { step: "acquire", pick: 2 },
        { step: "acquire", pick: 2 },
      ],
      [
        { step: "time", pick: 40 },
        { step: "renew", pick: 1 },
        { step: "release", pick: 0 },
      ],
      [
        { step: "acquire", pick: 0 },
        { step: "withdraw", pick: 0 },
      ],
      [
        { step: "undo", pick: 1 },
        { step: "acquire", pick: 2 },
      ],
      [
        { step: "release", pick: 0 },
        { step: "release", pick: 0 },
        { step: "acquire", pick: 1 },
      ],
    ];
    const { content, known, now } = await recorded(plan);
    expect(known.filter(({ event }) => event.kind === "granted").length).toBeGreaterThan(5);
    for (const cut of cutsOf(content)) await check(content, cut, known, now);
  });

  test("after any history, at any byte", async () => {
    await fc.assert(
      fc.asyncProperty(plans, fc.array(fc.nat(), { minLength: 8, maxLength: 8 }), async (plan, cuts) => {
        const { content, known, now } = await recorded(plan);
        const from = firstFrameEnd(content);
        for (const cut of [...cuts.map((any) => from + (any % (content.length - from + 1))), content.length]) {
          await check(content, cut, known, now);
        }
      }),
      { numRuns: 100 },
    );
  });

  test("after any history with compactions in between", async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const { content, known, now } = await recorded(plan, 1);
        // The file shrinks sometimes, so its length no longer shows when a client knew something.
        const unordered = known.map((one) => ({ ...one, length: 0 }));
        await check(content, content.length, unordered, now);
      }),
      { numRuns: 100 },
    );
  });

  test("the check finds an answer that was sent too early", async () => {
    const { content, known, now } = await recorded([[{ step: "acquire", pick: 0 }]]);
    const early = known.map((one) => ({ ...one, length: firstFrameEnd(content) }));
    await expect(check(content, firstFrameEnd(content), early, now)).rejects.toThrow();
  });
});
