import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { Input } from "@slotkeeper/queue/internals";
import { describe, expect, test } from "vitest";
import { arrive, Decider, release, START } from "./decider.ts";

/** Decisions of several instances about one host: whom they notify, and what they record about each other. */

const ONE = { maxSlotPerHost: 1, maxSlotPerIp: -1, collectMs: 500 } as const;

/** `j` has a waiting session `s1`, and `i` gives it the slot of `s0` at 10 ms. Then `s2` waits at `i`. */
function offered(config: FairQueueConfig = ONE): Decider {
  const host = new Decider(config);
  host.at(0, [arrive("s0", "a", 0, 9_000)], ["s0"]);
  host.instance = "j";
  host.at(1, [arrive("s1", "b", 1, 9_000)], ["s1"]);
  host.instance = "i";
  host.at(2, [arrive("s2", "c", 2, 9_000)], ["s2"]);
  expect(host.at(10, [release(host.book, "s0")], ["s2"]).wake).toEqual(["j"]);
  expect(host.book.get("offer", "s1")).toMatchObject({ lapsesAt: START + 60 });
  return host;
}

function end(session: string, kind: "canceled" | "timeout", ms: number, deadlineMs = 9_000): Input {
  const times = { arrivedAt: START, keepUntil: START + deadlineMs, at: START + ms, pendingAt: undefined };
  return { kind: "end", session, bucket: "a", end: kind, ...times };
}

const DONE = { kind: "done" };
const MISSING = { kind: "missing" };

describe("an instance that does not collect an offer", () => {
  test("counts as absent, and the next waiter gets the slot", () => {
    const host = offered();
    host.at(59, [], ["s2"]);
    expect(host.book.leaseOf("s2")).toBeUndefined();
    host.at(60, [], ["s2"]);
    expect(host.book.get("absence", "j")).toMatchObject({ missedAt: START + 60 });
    expect(host.book.leaseOf("s2")).toBeDefined();
  });

  test("is not absent if it was seen after the end of the offer: then only its client is away", () => {
    for (const [seenMs, isAbsent] of [
      [60, true],
      [61, false],
    ] as const) {
      const host = offered();
      host.seenMs = { j: seenMs };
      host.at(70, [], []);
      expect(host.book.get("absence", "j") !== undefined).toBe(isAbsent);
      expect(host.book.get("waiter", "s1")?.awayAt).toBe(isAbsent ? undefined : START + 60 - ONE.collectMs);
    }
  });

  test("stays absent until it is seen, decides or is dead", () => {
    for (const [how, isAbsent] of [
      ["seen before", true],
      ["seen", false],
      ["decides", false],
      ["dead", false],
    ] as const) {
      const host = offered();
      host.at(70, [], ["s2"]);
      expect(host.book.size("absence")).toBe(1);
      host.seenMs = how === "seen" ? { j: 61 } : how === "seen before" ? { j: 60 } : {};
      if (how === "decides") host.instance = "j";
      host.at(80, how === "dead" ? [{ kind: "dead", instance: "j" }] : [{ kind: "renew", slotToken: "none" }], ["s2"]);
      expect([how, host.book.get("absence", "j") !== undefined]).toEqual([how, isAbsent]);
    }
  });
});

describe("a client that is away", () => {
  test("has collectMs for an offer at any instance, and was away since it left", () => {
    for (const instance of ["i", "j"]) {
      const host = new Decider(ONE);
      host.at(0, [arrive("s0", "a", 0, 9_000)], ["s0"]);
      host.instance = instance;
      host.at(1, [arrive("s1", "b", 1, 9_000)], ["s1"]);
      host.at(5, [{ kind: "client", session: "s1", awayAt: START + 5 }], []);
      host.instance = "i";
      const { wake } = host.at(10, [release(host.book, "s0")], []);
      expect(wake).toEqual(instance === "i" ? [] : ["j"]);
      expect(host.book.get("offer", "s1")).toMatchObject({ lapsesAt: START + 510 });
      host.at(510, [], []);
      expect(host.book.size("offer")).toBe(0);
      expect(host.book.get("waiter", "s1")?.awayAt).toBe(START + 5);
      expect(host.book.size("absence")).toBe(0);
    }
  });
});

describe("other instances are notified", () => {
  test("of a commit while they have waiters, at most 16 of them", () => {
    const host = new Decider({ ...ONE, maxWaitersPerHost: 0 });
    for (let at = 0; at < 20; at++) {
      host.instance = `i${at}`;
      host.at(at, [arrive(`s${at}`, "a", at, 9_000)], [`s${at}`]);
    }
    const { wake } = host.at(100, [end("s19", "canceled", 100)], []);
    expect(wake).toHaveLength(16);
    const few = offered();
    expect(few.at(20, [end("s2", "canceled", 20)], []).wake).toEqual(["j"]);
  });

  test("if a session that they have ends, and not the one that ends it", () => {
    const host = new Decider({ ...ONE, maxSlotPerHost: 2 });
    host.at(0, [arrive("s0", "a", 0, 9_000), arrive("s1", "a", 0, 9_000)], ["s0", "s1"]);
    expect(host.at(10, [end("s0", "canceled", 10)], []).wake).toEqual([]);
    host.instance = "j";
    expect(host.at(20, [end("s1", "canceled", 20)], []).wake).toEqual(["i"]);
  });
});

describe("a session ends", () => {
  test("not by an input that belongs to an earlier session of its id", () => {
    for (const [slots, polled] of [
      [1, ["s0"]],
      [2, ["s0", "s1"]],
    ] as const) {
      const host = new Decider({ ...ONE, maxSlotPerHost: slots });
      host.at(0, [arrive("s0", "a", 0, 9_000), arrive("s1", "a", 0, 9_000)], polled);
      expect(host.at(500, [end("s1", "canceled", 500, 500)], polled).outcomes).toEqual([MISSING]);
      expect(host.at(501, [end("s1", "canceled", 501, 500)], polled).outcomes).toEqual([MISSING]);
      expect(host.at(502, [end("s1", "canceled", 502, 600)], polled).outcomes).toEqual([DONE]);
    }
  });

  test("by its deadline although its client polls, and not before", () => {
    for (const [ms, outcome] of [
      [899, MISSING],
      [900, DONE],
    ] as const) {
      const host = new Decider(ONE);
      host.at(0, [arrive("s0", "a", 0, 9_000), arrive("s1", "a", 0, 900)], ["s0", "s1"]);
      expect(host.at(ms, [end("s1", "timeout", ms, 900)], ["s1"]).outcomes).toEqual([outcome]);
    }
  });

  test("by a cancellation up to cancelMs after its grant", () => {
    for (const [later, outcome] of [
      [0, DONE],
      [1, MISSING],
    ] as const) {
      const host = new Decider(ONE);
      host.at(0, [arrive("s0", "a", 0, 90_000)], ["s0"]);
      const ms = host.cancelMs + later;
      expect(host.at(ms, [end("s0", "canceled", ms, 90_000)], []).outcomes).toEqual([outcome]);
    }
  });

  test("without a second beginning if its instance died, and not long after its deadline", () => {
    const host = offered();
    host.at(20, [{ kind: "dead", instance: "j" }], ["s2"]);
    const { notes } = host.at(30, [end("s1", "canceled", 30)], ["s2"]);
    expect(notes.map(({ kind }) => kind)).toEqual(["ended"]);
    expect(host.at(7_200_000, [end("s9", "canceled", 0, 10)], []).outcomes).toEqual([MISSING]);
  });
});

describe("an offer becomes no lease", () => {
  const two = { maxSlotPerHost: 3, maxSlotPerIp: -1, collectMs: 500 } as const;
  const demand = { keys: { tenant: "acme" }, class: "batch" };
  const asked = (session: string): Input => ({ ...arrive(session, "a", 0, 400), demand });
  const limits = { ...two, keys: { tenant: { slots: 2 } }, classes: { batch: { ceiling: 2 } } };

  test.each<[string, FairQueueConfig, boolean]>([
    ["nothing", {}, true],
    ["the limit of its bucket", { maxSlotPerIp: 1 }, false],
    ["the slots of its key", { keys: { tenant: { slots: 1 } } }, false],
    ["the ceiling of its class", { classes: { batch: { ceiling: 1 } } }, false],
  ])("if %s was lowered since", (_, change, isGranted) => {
    const host = new Decider(limits);
    host.at(0, [asked("s0"), asked("s1")], ["s0"]);
    expect(host.book.size("offer")).toBe(1);
    host.at(10, [], ["s1"], change);
    expect(host.book.leaseOf("s1") !== undefined).toBe(isGranted);
  });

  test("at the deadline of its session", () => {
    for (const ms of [399, 400]) {
      const host = new Decider(limits);
      host.at(0, [asked("s0"), asked("s1")], ["s0"]);
      host.at(ms, [], ["s1"]);
      expect(host.book.leaseOf("s1") !== undefined).toBe(ms < 400);
    }
  });

  test("while the host is paused: it is dropped, and only by a pause", () => {
    const host = new Decider(limits);
    host.at(0, [asked("s0"), asked("s1")], ["s0"]);
    host.at(10, [{ kind: "pause", isPaused: false }], []);
    expect(host.book.size("offer")).toBe(1);
    host.at(20, [{ kind: "pause", isPaused: true }], []);
    expect(host.book.size("offer")).toBe(0);
  });
});

describe("a slot that no call has taken", () => {
  function returned(deadlineMs: number, fence?: number, change: FairQueueConfig = {}, more: readonly Input[] = []) {
    const host = new Decider({ ...ONE, maxSlotPerHost: 4, breaker: { openSeconds: 5 } });
    const session = { ...arrive("s0", "a", 0, deadlineMs), demand: { width: 3 } };
    host.at(0, [session], ["s0"]);
    host.undelivered = ["s0"];
    const input = { ...session, kind: "return", fence: fence ?? host.book.leaseOf("s0")?.fence, awayAt: START + 100 };
    const { outcomes, notes } = host.at(500, [...more, input as unknown as Input], [], change);
    const ended = notes.flatMap((note) => (note.kind === "ended" ? [[note.end, note.reason]] : []));
    return { outcome: outcomes.at(-1), ended, awayAt: host.book.get("waiter", "s0")?.awayAt };
  }

  test("goes back, and its client is away since it left", () => {
    expect(returned(9_000)).toEqual({ outcome: DONE, ended: [], awayAt: START + 100 });
    expect(returned(9_000, 1)).toMatchObject({ outcome: MISSING });
  });

  test("goes back and its session ends if it may not wait any longer", () => {
    expect(returned(500)).toMatchObject({ outcome: DONE, ended: [["timeout", "deadline"]] });
    expect(returned(9_000, undefined, { maxSlotPerHost: 2 })).toMatchObject({ ended: [["timeout", "impossible"]] });
    expect(returned(9_000, undefined, {}, [{ kind: "breaker", isOpen: true }]).ended).toEqual([["throttled", "idle"]]);
  });
});

describe("a session that arrives alone", () => {
  const plain = { maxSlotPerHost: 9, maxSlotPerIp: -1, weightedScheduler: { enabled: false } } as const;
  const asks = (session: string, width: number, tokens?: number): Input => {
    const cost = tokens === undefined ? {} : { cost: { tokens } };
    return { ...arrive(session, "a", 0, 9_000), demand: { width, class: "batch", ...cost } };
  };

  test.each([
    [1, true],
    [2, false],
  ])("waits if the ceiling of its class has no room for it (%i slots)", (width, isGranted) => {
    const host = new Decider({ ...plain, classes: { batch: { ceiling: 3 } } });
    host.at(0, [asks("s0", 2)], ["s0"]);
    host.at(1, [asks("s1", width)], ["s1"]);
    expect(host.book.leaseOf("s1") !== undefined).toBe(isGranted);
  });

  test.each([
    [4, true],
    [5, false],
  ])("waits if a budget cannot pay for it (%i tokens)", (tokens, isGranted) => {
    const budgets = { tokens: { limit: 10, perSeconds: 3_600 } };
    const host = new Decider({ ...plain, budgets, classes: { batch: {} } });
    host.at(0, [asks("s0", 1, 6)], ["s0"]);
    host.at(1, [asks("s1", 1, tokens)], ["s1"]);
    expect(host.book.leaseOf("s1") !== undefined).toBe(isGranted);
  });
});

describe("a host", () => {
  test("is created by an operator or by a session before its deadline, and by nothing else", () => {
    const created = (ms: number, input: Input) => {
      const host = new Decider(ONE);
      const { outcomes, notes, wake } = host.at(ms, [input], []);
      return { isCreated: host.book.limits !== undefined, outcomes, notes, wake };
    };
    expect(created(0, { kind: "limits", limits: { slots: 3 } }).isCreated).toBe(true);
    expect(created(0, { kind: "breaker", isOpen: true }).isCreated).toBe(true);
    expect(created(0, { kind: "pause", isPaused: true }).isCreated).toBe(true);
    expect(created(8_999, arrive("s0", "a", 0, 9_000)).isCreated).toBe(true);
    const nothing = { isCreated: false, outcomes: [MISSING], notes: [], wake: [] };
    expect(created(9_000, arrive("s0", "a", 0, 9_000))).toEqual(nothing);
    expect(created(0, { kind: "renew", slotToken: "none" })).toEqual(nothing);
  });

  test("keeps the record of a session that is asked for again where it waits, unless something is new", () => {
    const host = new Decider(ONE);
    const asked = (ms: number, deadlineMs = 9_000) => {
      host.at(ms, [arrive("s1", "b", 1, deadlineMs)], ["s1"]);
      return host.book.get("waiter", "s1");
    };
    host.at(0, [arrive("s0", "a", 0, 9_000)], ["s0"]);
    const first = asked(1);
    expect(asked(2)).toBe(first);
    host.instance = "j";
    expect(asked(3)).toEqual({ ...first, instance: "j" });
    expect(asked(4, 9_500)).toMatchObject({ deadlineAt: START + 9_500 });
  });

  test("keeps the later deadline of a session that is asked for again", () => {
    const host = offered();
    for (const [ms, expected] of [
      [9_500, 9_500],
      [9_200, 9_500],
    ] as const) {
      host.at(20, [{ ...arrive("s2", "c", 2, ms), isReturning: true }], ["s2"]);
      expect(host.book.get("waiter", "s2")).toMatchObject({ deadlineAt: START + expected, bucket: "c" });
    }
  });
});
