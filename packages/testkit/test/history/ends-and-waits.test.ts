import { expect, test } from "vitest";
import { Script } from "./script.ts";

/** With this bound no slot is ever free for too long. */
const NEVER = 1_000_000;

test("HIST4: after an end a session is neither granted nor pending for long", () => {
  const ended = () => {
    const script = new Script({ promptMs: NEVER });
    return { script, session: script.session().pending(0, 10).timeout(20, 60_020, "deadline") };
  };
  const repeated = ended();
  repeated.session.timeout(60_030, 60_031, "deadline");
  expect(repeated.script.broken()).toEqual([]);
  const granted = ended();
  granted.session.granted(60_030, 60_031);
  expect(granted.script.broken()).toEqual(["HIST4"]);
  const pending = ended();
  pending.session.pending(60_030, 60_031);
  expect(pending.script.broken()).toEqual([]);
  pending.session.pending(60_040, 60_041);
  expect(pending.script.broken()).toEqual(["HIST4"]);
  const blocked = ended();
  blocked.session.pending(60_030, 60_031, { blockedBy: "store" }).pending(60_040, 60_041, { blockedBy: "store" });
  expect(blocked.script.broken()).toEqual([]);
});

test("HIST4: a poll that was already open when the session ended contradicts nothing", () => {
  const script = new Script({ promptMs: NEVER });
  script.session().pending(0, 10).granted(20, 100).timeout(30, 60_030, "deadline").release(200);
  expect(script.broken()).toEqual([]);
});

test("HIST4: no answer says that the session of a holder is over, unless it gave the slot back", () => {
  const script = new Script();
  script.session().granted(0, 10).timeout(20, 30, "released").release(40);
  expect(script.broken()).toEqual(["HIST4"]);
  const released = new Script();
  released.session().granted(0, 10).release(15).timeout(20, 30, "released");
  expect(released.broken()).toEqual([]);
});

test("HIST4: nothing is granted or renewed after an acknowledged release has taken effect", () => {
  const granted = (sentAt: number) => {
    const script = new Script();
    script
      .session()
      .granted(0, 10, { fence: 1 })
      .release(20)
      .granted(sentAt, sentAt + 1, { fence: 1 });
    return script;
  };
  expect(granted(500).broken()).toEqual([]);
  expect(granted(2_000).broken()).toEqual(["HIST4"]);
  expect(granted(2_000).fault("delay", 100, 200).broken()).toEqual([]);
  // After the deadline the service may answer from its memory.
  expect(granted(70_000).broken()).toEqual([]);
  const renewed = new Script();
  renewed.session().granted(0, 10).release(20).renew(2_000, 2_001);
  expect(renewed.broken()).toEqual(["HIST4"]);
});

test("HIST4: a lease that ended cannot be renewed", () => {
  const script = new Script();
  script.session().granted(0, 10).renew(29_000, 29_010).renew(58_000, 58_010);
  expect(script.broken()).toEqual([]);
  script.session().granted(0, 12).renew(31_000, 31_010);
  expect(script.broken()).toEqual(["HIST4"]);
});

test("HIST4: a canceled session is not granted, and a first call that does not wait is not answered with a grant", () => {
  const canceled = new Script();
  canceled.session().pending(0, 10).cancel(20, 21).granted(2_000, 2_001);
  expect(canceled.broken()).toEqual(["HIST4"]);
  const first = new Script();
  first.session({ waitMs: 0 }).granted(0, 10).release(20);
  expect(first.broken()).toEqual(["HIST4"]);
});

test("HIST5: a renewal is refused only if the slot may be gone", () => {
  const script = new Script();
  script.session().granted(0, 10).renew(29_990, 30_010, 410);
  script.session().granted(0, 11).release(20).renew(30, 40, 410);
  expect(script.broken()).toEqual([]);
  script.session().granted(100, 110).renew(1_000, 1_010, 410);
  expect(script.broken()).toEqual(["HIST5"]);
  expect(script.fault("instance-clock", 990, 1_005).broken()).toEqual([]);
});

test("HIST5: an operator's revocation ends a lease", () => {
  const script = new Script();
  const slot = script.session().granted(0, 10, { fence: 7 });
  slot.renew(1_000, 1_010, 410);
  expect(script.broken()).toEqual(["HIST5"]);
  const key = "5edc672e1d7c7d5cd4da08fb1a7aa5e9e9ba0c27b8eefb79d0e9a3c2e5d3b111";
  const named = new Script();
  named.lines.push({
    kind: "call",
    call: "acquire",
    sentAt: 0,
    answeredAt: 10,
    ask: { hostnameHash: key, waitMs: 5_000 },
    status: 200,
    answer: { result: "granted", queryToken: "q", slotToken: "slot_1", fence: 7, leaseMs: 30_000, limit: 2 },
  });
  const revoke = { kind: "call", call: "revoke", sentAt: 500, answeredAt: 510, status: 204, answer: {} } as const;
  named.lines.push({ ...revoke, ask: { slot: `${key}.7` } });
  const renewal = { kind: "call", call: "renew", sentAt: 1_000, answeredAt: 1_010, status: 410, answer: {} } as const;
  named.lines.push({ ...renewal, ask: { slotToken: "slot_1" } });
  expect(named.broken()).toEqual([]);
});

test("HIST5: a session times out at its deadline or when its client was idle, and not before", () => {
  const script = new Script({ promptMs: NEVER, fairQueue: { sessionIdleSeconds: 10 } });
  script.session().pending(0, 10).timeout(20, 60_020, "deadline");
  script.session().pending(0, 10).timeout(12_000, 12_001, "idle");
  expect(script.broken()).toEqual([]);
  script.session().pending(0, 10).pending(20, 6_000).timeout(7_000, 8_000, "idle");
  expect(script.broken()).toEqual(["HIST5"]);
});

test("HIST5: in a fleet, the last poll before a silence may have been held where the session was not", () => {
  const fleet = (endsAt: number, ...polls: readonly (readonly [number, number])[]) => {
    const script = new Script({ promptMs: NEVER, instances: 3, fairQueue: { sessionIdleSeconds: 14 } });
    const session = script.session().pending(0, 10);
    for (const [sentAt, answeredAt] of polls) session.pending(sentAt, answeredAt);
    session.timeout(endsAt, endsAt + 1, "idle");
    return script.broken();
  };
  expect(fleet(17_000, [20, 6_020], [6_021, 12_021])).toEqual([]);
  expect(fleet(18_500, [20, 6_020], [6_021, 12_021], [12_022, 18_022])).toEqual(["HIST5"]);
});

test("HIST5: other ends have their reasons, too", () => {
  const ends = (build: (script: Script) => void) => {
    const script = new Script();
    build(script);
    return script.broken();
  };
  expect(ends((script) => script.session().pending(0, 10).timeout(20, 30, "canceled"))).toEqual(["HIST5"]);
  expect(ends((script) => script.session().pending(0, 10).cancel(11, 12).timeout(20, 30, "canceled"))).toEqual([]);
  // In the simulation messages may take no time: the cancellation and the answer that shows it are of one instant.
  expect(ends((script) => script.session().pending(0, 10).cancel(30, 30).timeout(30, 30, "canceled"))).toEqual([]);
  expect(ends((script) => script.session().pending(0, 10).timeout(20, 30, "unknown-token"))).toEqual(["HIST5"]);
  expect(ends((script) => script.session().timeout(0, 30, "released"))).toEqual(["HIST5"]);
  expect(ends((script) => script.session().ask(0, 5, { result: "throttled" }))).toEqual(["HIST5"]);
  const failed = (script: Script) => {
    script.session().granted(0, 10).release(20, 503);
    script.session().ask(30, 35, { result: "throttled" });
  };
  expect(ends(failed)).toEqual([]);
});

/** Two slots are used at a time, and a third client waits from 100 ms on. */
function waiting(release: (script: Script) => void, more: object = {}): Script {
  const script = new Script({ fairQueue: { ...more } });
  release(script);
  script.session().pending(100, 6_100).pending(6_101, 12_101).granted(12_102, 14_000).release(14_100);
  return script;
}

test("HIST6: a release that did not free the slot is found when the waiter is not served", () => {
  const used = (script: Script) => script.session().granted(0, 11).release(13_900);
  const lost = waiting((script) => {
    used(script);
    script.session().granted(0, 10).release(3_000);
  });
  expect(lost.broken()).toEqual(["HIST6"]);
  const prompt = waiting((script) => {
    used(script);
    script.session().granted(0, 10).release(13_000);
  });
  expect(prompt.broken()).toEqual([]);
});

test("HIST6: a slot may be missing while a client has it, may have it, or during a fault", () => {
  const with2nd = (second: (script: Script) => void) =>
    waiting((script) => {
      script.session().granted(0, 11).release(13_900);
      second(script);
    });
  // Its client never released it.
  expect(with2nd((script) => script.session().granted(0, 10)).broken()).toEqual([]);
  // The release may have been lost.
  expect(with2nd((script) => script.session().granted(0, 10).lostRelease(3_000)).broken()).toEqual([]);
  // A grant may have been lost on its way.
  const lost = with2nd((script) => {
    script.session().granted(0, 10).release(3_000);
    script.session().ask(50, undefined);
  });
  expect(lost.broken()).toEqual([]);
  const faulty = with2nd((script) => script.session().granted(0, 10).release(3_000));
  expect(faulty.fault("delay", 3_500, 13_500).broken()).toEqual([]);
  // The minimum hold keeps a released slot occupied.
  const held = waiting(
    (script) => {
      script.session().granted(0, 11).release(13_900);
      script.session().granted(0, 10).release(3_000);
    },
    { minSlotHoldMs: 10_000 },
  );
  expect(held.broken()).toEqual([]);
});

test("HIST6: a bucket at its limit or in its cooldown leaves slots free", () => {
  const waits = (more: object) => {
    const script = new Script({ fairQueue: { maxSlotPerHost: 2, ...more } });
    script.session({ bucket: "b" }).granted(0, 10).release(13_000);
    script.session({ bucket: "b" }).pending(100, 6_100).pending(6_101, 12_101).granted(12_102, 13_100).release(14_000);
    return script.broken();
  };
  expect(waits({ maxSlotPerIp: 1 })).toEqual([]);
  expect(waits({ maxSlotPerIp: -1 })).toEqual(["HIST6"]);
  const cooling = new Script({ fairQueue: { ipCooldownSeconds: 10 } });
  cooling.session({ bucket: "b" }).granted(0, 10).release(100);
  cooling.session({ bucket: "b" }).pending(100, 6_100).granted(6_101, 10_200).release(10_300);
  expect(cooling.broken()).toEqual([]);
});

test("HIST6: after a failure of the upstream the breaker may keep slots back", () => {
  const failed = (status: number) => {
    const script = waiting((one) => one.session().granted(0, 11).release(100, status));
    script.session().granted(200, 205, { fence: 206 }).release(8_000);
    return script.broken();
  };
  expect(failed(200)).toEqual(["HIST6"]);
  expect(failed(503)).toEqual([]);
});
