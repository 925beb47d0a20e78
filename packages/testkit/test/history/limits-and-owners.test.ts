import { expect, test } from "vitest";
import { Script } from "./script.ts";

test("ordinary hand-overs break no rule, also at the instant of a release and at hosts with their own fences", () => {
  const script = new Script();
  script.session().granted(0, 10).release(100);
  script.session().granted(1, 11).release(200);
  script.session().granted(90, 100).release(300);
  script.session({ host: "b.example" }).granted(1, 10, { fence: 10 }).release(100);
  expect(script.broken()).toEqual([]);
});

test("HIST1: one slot too many is found, at a host and in a bucket", () => {
  const host = new Script();
  for (const at of [10, 11, 12]) host.session().granted(0, at).release(100);
  expect(host.broken()).toEqual(["HIST1"]);
  const bucket = new Script({ fairQueue: { maxSlotPerIp: 1 } });
  for (const at of [10, 11]) bucket.session({ bucket: "b" }).granted(0, at).release(100);
  expect(bucket.broken()).toEqual(["HIST1"]);
  const shared = new Script({ fairQueue: { maxSlotPerIp: 1 } });
  for (const at of [10, 11]) shared.session({ bucket: "" }).granted(0, at).release(100);
  expect(shared.broken()).toEqual([]);
});

test("HIST1: the limits of a host are those that the configuration gives its name", () => {
  const broken = (hosts: { readonly [name: string]: { readonly maxSlotPerHost: number } }) => {
    const script = new Script({ fairQueue: { maxSlotPerHost: 1, hosts } });
    for (const at of [10, 11]) script.session({ host: "A.example" }).granted(0, at).release(100);
    return script.broken();
  };
  expect(broken({ "a.example": { maxSlotPerHost: 2 } })).toEqual([]);
  expect(broken({ "b.example": { maxSlotPerHost: 2 } })).toEqual(["HIST1"]);
});

test("HIST1: slots of a key that is in shadow mode are not judged, and a required key must be sent", () => {
  const at = (tenant: object, ...sessions: readonly object[]) => {
    const script = new Script({ fairQueue: { maxSlotPerHost: 20, keys: { tenant } } });
    for (const [index, session] of sessions.entries())
      script
        .session(session)
        .granted(0, 10 + index, { limit: 20 })
        .release(100);
    return script.broken();
  };
  const acme = { keys: { tenant: "acme" } };
  expect(at({ slots: 1 }, acme, acme)).toEqual(["HIST1"]);
  expect(at({ slots: 1, shadow: true }, acme, acme)).toEqual([]);
  expect(at({ required: true }, acme, {})).toEqual(["HIST1"]);
  expect(at({ required: true, shadow: true }, acme, {})).toEqual([]);
});

test("HIST1: a slot counts until its release is sent, or until its lease ends as counted from the sending", () => {
  const withThird = (end: (script: Script) => void) => {
    const script = new Script({ promptMs: 10_000 });
    script.session().granted(0, 10).release(60_000);
    end(script);
    script.session().granted(31_000, 31_010).release(60_000);
    return script.broken();
  };
  expect(withThird((script) => script.session().granted(0, 20).lostRelease(31_000))).toEqual([]);
  // Its lease ended 30 s after the call was sent, not after the answer had arrived.
  expect(withThird((script) => script.session().granted(1_000, 5_000))).toEqual([]);
  const renewed = (script: Script) => {
    script.session().granted(1_000, 5_000).renew(20_000, 20_010);
    script.session().granted(2_000, 5_001).renew(20_000, 20_010);
  };
  expect(withThird(renewed)).toEqual(["HIST1"]);
});

test("HIST1: an unanswered renewal extends nothing for certain", () => {
  const script = new Script();
  for (const at of [10, 11]) script.session().granted(0, at);
  for (const { slotToken } of [{ slotToken: "slot_1" }, { slotToken: "slot_2" }]) {
    script.lines.push({ kind: "call", call: "renew", sentAt: 20_000, gaveUpAt: 20_500, ask: { slotToken } });
  }
  script.session().granted(40_000, 40_001).release(41_000);
  expect(script.broken()).toEqual([]);
});

test("HIST1: lowering a limit takes no slot away, but what is granted afterwards must be within it", () => {
  const script = new Script();
  for (const at of [10, 11]) script.session().granted(0, at).release(25_000);
  const ask = { host: "a.example", maxSlotPerHost: 1 };
  script.lines.push({ kind: "call", call: "limits", sentAt: 100, answeredAt: 110, ask, status: 204, answer: {} });
  expect(script.broken()).toEqual([]);
  script.session().granted(20_000, 20_010, { limit: 1 }).release(25_000);
  expect(script.broken()).toEqual(["HIST1"]);
});

test("HIST1: a grant that states a limit which was never in force is found; without facts the stated limit counts", () => {
  const script = new Script();
  script.session().granted(0, 10, { limit: 3 }).release(20);
  expect(script.broken()).toEqual(["HIST1"]);
  const unknown = new Script();
  unknown.lines.length = 0;
  for (const at of [10, 11])
    unknown
      .session({ keys: { tenant: "t" } })
      .granted(0, at)
      .release(100);
  expect(unknown.broken()).toEqual([]);
  unknown.session().granted(0, 12).release(100);
  expect(unknown.broken()).toEqual(["HIST1"]);
});

test("HIST1: slots from before a failover that lost commits, or a jump of the store's clock, do not count", () => {
  for (const fault of ["lost-commits", "store-clock"] as const) {
    const script = new Script().fault(fault, 500, 600);
    for (const at of [10, 11]) script.session().granted(0, at).release(5_000);
    for (const at of [1_010, 1_011]) script.session().granted(1_000, at).release(5_000);
    expect(script.broken()).toEqual([]);
    script.session().granted(1_000, 1_012).release(5_000);
    expect(script.broken()).toEqual(["HIST1"]);
  }
});

test("HIST2: a slot of two sessions and a session with two slots are found; the same grant twice is allowed", () => {
  const repeated = new Script();
  repeated.session().granted(0, 10, { fence: 1 }).granted(11, 12, { fence: 1 }).release(20);
  expect(repeated.broken()).toEqual([]);
  const shared = new Script();
  shared.session().granted(0, 10, { fence: 1 }).release(20);
  shared.session().granted(30, 40, { fence: 2, slotToken: "slot_1" }).release(50);
  expect(shared.broken()).toContain("HIST2");
  const twice = new Script();
  twice.session().granted(0, 10, { fence: 1 }).granted(11, 12, { fence: 2, slotToken: "other" }).release(50);
  expect(twice.broken()).toEqual(["HIST2"]);
});

test("HIST2: two slots of one request id are found while both are held, not one after the other", () => {
  const ask = { requestId: "r-1" };
  const both = new Script();
  both.session(ask).granted(0, 10).release(100);
  both.session(ask).granted(20, 30).release(100);
  expect(both.broken()).toEqual(["HIST2"]);
  const later = new Script();
  later.session(ask).granted(0, 10).release(100);
  later.session(ask).granted(200, 210).release(300);
  // Fences: the second session may have begun with the first call of its request id.
  expect(later.broken()).toEqual([]);
});

test("HIST2: a poll that is answered with the token of another session is found", () => {
  const script = new Script();
  script.session().pending(0, 10);
  const other = script.session().pending(0, 10);
  other.ask(20, 30, { result: "pending", queryToken: "query-1" });
  expect(script.broken()).toEqual(["HIST2"]);
});

test("HIST3: a fence that does not grow, or is given twice, is found; overlapping sessions may get any order", () => {
  const overlapping = new Script();
  overlapping.session().granted(0, 10, { fence: 5 }).release(20);
  overlapping.session().granted(9, 30, { fence: 4 }).release(40);
  expect(overlapping.broken()).toEqual([]);
  const falling = new Script();
  falling.session().granted(0, 10, { fence: 5 }).release(20);
  falling.session().granted(11, 30, { fence: 4 }).release(40);
  expect(falling.broken()).toEqual(["HIST3"]);
  const twice = new Script();
  twice.session().granted(0, 10, { fence: 5 }).release(20);
  twice.session().granted(9, 30, { fence: 5 }).release(40);
  expect(twice.broken()).toEqual(["HIST3"]);
  const failedOver = new Script().fault("lost-commits", 12, 20);
  failedOver.session().granted(0, 10, { fence: 5 }).release(20);
  failedOver.session().granted(30, 40, { fence: 4 }).release(50);
  expect(failedOver.broken()).toEqual(["HIST3"]);
});

test("HIST9: a use after the lease is found, and one within it is not", () => {
  const script = new Script();
  script.session().granted(0, 10).renew(20_000, 20_010).use(10, 49_000).release(49_001);
  expect(script.broken()).toEqual([]);
  script.session().granted(0, 11).use(11, 60_000).release(60_001);
  expect(script.broken()).toEqual(["HIST9"]);
});
