import { describe, expect, test } from "vitest";
import { Script } from "./script.ts";

describe("HIST10: the cooldown of a bucket", () => {
  /** A bucket with one slot gives it back at 100, and gets the next one at the given time. */
  const next = (at: number, more: { bucket?: string; limit?: number; giveBack?: "release" | "cancel" } = {}) => {
    const { bucket = "b", limit = 1, giveBack = "release" } = more;
    const script = new Script({ fairQueue: { ipCooldownSeconds: 1, maxSlotPerIp: limit } });
    const first = script.session({ bucket }).granted(0, 10);
    if (giveBack === "release") first.release(100);
    else first.cancel(100, 101);
    script.session({ bucket }).granted(50, at).release(5_000);
    return script;
  };

  test("a slot within the cooldown is found, after a release and after a cancellation", () => {
    expect(next(1_050).broken()).toEqual(["HIST10"]);
    expect(next(1_050, { giveBack: "cancel" }).broken()).toEqual(["HIST10"]);
    expect(next(1_101).broken()).toEqual([]);
  });

  test("callers without a bucket have none, and with two slots the second may have been granted before the release", () => {
    expect(next(1_050, { bucket: "" }).broken()).toEqual([]);
    expect(next(1_050, { limit: 2 }).broken()).toEqual([]);
  });

  test("a slot whose lease ended, or that an operator took, starts none", () => {
    const lapsed = new Script({ promptMs: 1e6, fairQueue: { ipCooldownSeconds: 1, maxSlotPerIp: 1 } });
    lapsed.session({ bucket: "b" }).granted(0, 10).lostRelease(29_900);
    lapsed.session({ bucket: "b" }).granted(29_800, 30_010).release(30_500);
    expect(lapsed.broken()).toEqual([]);
  });

  test("lost commits and wrong clocks excuse it", () => {
    expect(next(1_050).fault("lost-commits", 200, 300).broken()).toEqual([]);
    expect(next(1_050).fault("instance-clock", 200, 300).broken()).toEqual([]);
  });
});

describe("HIST11: the minimum hold and the spacing of releases", () => {
  const one = { maxSlotPerHost: 1, minSlotHoldMs: 500 };
  /** One slot, granted at 10 and given back at 100; the next client gets it at the given time. */
  const next = (at: number, giveBack: (script: ReturnType<Script["session"]>) => void) => {
    const script = new Script({ fairQueue: one });
    const first = script.session().granted(0, 10, { limit: 1 });
    giveBack(first);
    script.session().granted(50, at, { limit: 1 }).release(5_000);
    return script.broken();
  };

  test("the hold counts from the hit that the release names", () => {
    const hitAt = (hit: number) => (session: ReturnType<Script["session"]>) =>
      session.release(100, 200, { hitUpstreamAtMs: 7_000 + hit, now: 7_100 });
    expect(next(540, hitAt(50))).toEqual(["HIST11"]);
    expect(next(560, hitAt(50))).toEqual([]);
    // The client called the upstream before it had the slot.
    expect(next(440, hitAt(-100))).toEqual([]);
    // Without `now`, the time of the hit is one of an unknown clock.
    expect(next(200, (session) => session.release(100, 200, { hitUpstreamAtMs: 7_050 }))).toEqual([]);
  });

  test("without a hit, and by cancel, it counts from the grant, which may be as old as the session", () => {
    expect(next(450, (session) => session.release(100))).toEqual(["HIST11"]);
    expect(next(450, (session) => session.cancel(100, 101))).toEqual(["HIST11"]);
    expect(next(510, (session) => session.cancel(100, 101))).toEqual([]);
  });

  test("a later grant proves when an earlier one can have been made", () => {
    const script = new Script({ fairQueue: one });
    script.session().granted(0, 10, { limit: 1 }).release(1_000, 200, { hitUpstreamAtMs: 10, now: 1_000 });
    // It waited since 0, but cannot have got the slot before 1000.
    script.session().granted(0, 1_010, { limit: 1 }).cancel(1_100, 1_101);
    script.session().granted(0, 1_400, { limit: 1 }).release(9_000);
    expect(script.broken()).toEqual(["HIST11"]);
  });

  /** Two slots are released at 1000, and two waiters get them. */
  const spaced = (first: number, second: number, more: object = {}) => {
    const script = new Script({ fairQueue: { smoothReleaseIntervalMs: 300, ...more } });
    for (const at of [10, 11]) script.session().granted(0, at).release(1_000, 200, { hitUpstreamAtMs: 0, now: 1_000 });
    for (const at of [first, second]) script.session().granted(20, at).release(9_000);
    return script;
  };

  test("released slots become free one after the other", () => {
    expect(spaced(1_010, 1_320).broken()).toEqual([]);
    expect(spaced(1_010, 1_200).broken()).toEqual(["HIST11"]);
    expect(spaced(1_010, 1_200, { smoothReleaseIntervalMs: 0 }).broken()).toEqual([]);
  });

  test("a changed configuration starts the spacing again, and a wrong clock excuses everything", () => {
    const changed = spaced(1_010, 1_200);
    changed.lines.push({ ...changed.lines[0], kind: "facts", at: 1_100 });
    expect(changed.broken()).toEqual([]);
    expect(spaced(1_010, 1_200).fault("instance-clock", 1_050, 1_100).broken()).toEqual([]);
  });
});

describe("HIST12 and HIST13: the breaker", () => {
  const breaker = { openSeconds: 2, consecutiveErrors: 2, fastMinSamples: 0, minSamples: 0 };
  /** Two errors open the breaker between 100 and 106; one session is throttled at 200. */
  const opened = (more: object = {}) => {
    const script = new Script({ promptMs: 1e6, fairQueue: { breaker: { ...breaker, ...more } } });
    for (const at of [10, 11])
      script
        .session()
        .granted(0, at)
        .release(90 + at, 503);
    script.session().ask(190, 200, { result: "throttled", throttleCode: 503, throttleRetryAfter: 2 });
    return script;
  };

  test("a slot for a session that asks while the breaker is open is found", () => {
    const early = opened();
    early.session().granted(300, 1_900).release(2_000);
    expect(early.broken()).toEqual(["HIST12"]);
    const late = opened();
    late.session().granted(300, 2_102).release(2_200);
    expect(late.broken()).toEqual([]);
  });

  test("the first error may be the one that opens the breaker, if its report arrives last", () => {
    const script = new Script({ promptMs: 1e6, fairQueue: { breaker: { ...breaker, openSeconds: 1 } } });
    // The report of the first error has no answer: it may take effect until 305, when the second one has.
    script.session().granted(0, 10);
    const late = { slotToken: "slot_1", status: 503 };
    script.lines.push({ kind: "call", call: "release", sentAt: 20, gaveUpAt: 300, ask: late });
    script.session().granted(0, 11).release(30, 503);
    script.session().ask(190, 310, { result: "throttled", throttleCode: 503, throttleRetryAfter: 1 });
    // An error that was sent after the throttled session began opened nothing for it.
    script.session().granted(40, 50).release(305, 503);
    script.session().granted(320, 1_250).release(1_300, 404);
    expect(script.broken()).toEqual([]);
  });

  test("a session that may have been granted before is not, nor one after an operator closed the breaker", () => {
    const overlapping = opened();
    overlapping.session().granted(150, 250).release(2_000);
    expect(overlapping.broken()).toEqual([]);
    const closed = opened();
    const ask = { host: "a.example", state: "closed" };
    closed.lines.push({ kind: "call", call: "breaker", sentAt: 400, answeredAt: 410, ask, status: 204, answer: {} });
    closed.session().granted(500, 600).release(2_000);
    expect(closed.broken()).toEqual([]);
  });

  test("a session with a shorter time of its own may probe, and close the breaker for others", () => {
    const script = opened();
    script.session({ throttleTimeWindowSeconds: 1 }).granted(300, 1_200).release(1_250, 200);
    script.session().granted(1_300, 1_400).release(1_500);
    expect(script.broken()).toEqual([]);
    const tooEarly = opened();
    tooEarly.session({ throttleTimeWindowSeconds: 1 }).granted(300, 900).release(1_250);
    expect(tooEarly.broken()).toEqual(["HIST12"]);
  });

  test("a session that was throttled early in a long history proves nothing about errors that came later", () => {
    const script = opened();
    script.session().granted(2_500, 2_600).release(2_700, 200);
    for (const at of [5_000, 5_100])
      script
        .session()
        .granted(at, at + 10)
        .release(at + 20, 503);
    script.session().granted(5_200, 5_300).release(5_400);
    expect(script.broken()).toEqual([]);
  });

  test("two probes at once are found, until a success is reported", () => {
    const two = opened();
    for (const at of [2_500, 2_510])
      two
        .session()
        .granted(at - 100, at)
        .release(3_000, 200);
    expect(two.broken()).toEqual(["HIST13"]);
    const allowed = opened({ halfOpenProbes: 2 });
    for (const at of [2_500, 2_510])
      allowed
        .session()
        .granted(at - 100, at)
        .release(3_000, 200);
    expect(allowed.broken()).toEqual([]);
    const success = opened();
    success.session().granted(2_300, 2_400).release(2_450, 200);
    for (const at of [2_500, 2_510])
      success
        .session()
        .granted(at - 100, at)
        .release(3_000, 200);
    expect(success.broken()).toEqual([]);
  });

  test("one probe after the other is allowed, and so are slots from before the breaker opened", () => {
    const script = opened();
    for (const at of [2_500, 3_000])
      script
        .session()
        .granted(at - 100, at)
        .release(at + 50, 404);
    expect(script.broken()).toEqual([]);
    const held = opened();
    held.session({ bucket: "old" }).granted(120, 150).release(3_000, 404);
    held.session().granted(2_400, 2_500).release(3_000, 404);
    expect(held.broken()).toEqual([]);
  });
});
