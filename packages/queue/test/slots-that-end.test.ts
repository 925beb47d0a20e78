import { type BookRecord, type EndingRecord, type LeaseRecord, newHead } from "@slotkeeper/queue";
import { Book, type Decision } from "@slotkeeper/queue/internals";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";
import { arrive, Decider, release, START } from "./decider.ts";

/** How slots end (`leases.ts`, `endings.ts`), and how long the ends of sessions are kept (END1 to END3 of `standing.ts`). */

const LONG_MS = 90_000;

/** A decider whose host has these records. */
function deciderWith(config: ConstructorParameters<typeof Decider>[0], records: readonly BookRecord[]): Decider {
  const { book } = new Decider(config);
  return new Decider(config, Book.of("h", "1.x", { head: { ...book.head, slots: 10 }, records }));
}

function lease(at: number, endsMs: number): LeaseRecord {
  return {
    kind: "lease",
    key: `slot_h.${at}`,
    fence: at,
    session: `s${at}`,
    bucket: `b${at}`,
    instance: "i",
    grantedAt: START,
    endsAt: START + endsMs,
    isReleased: false,
    isProbe: false,
    keepUntil: START + LONG_MS,
    width: 1,
  };
}

function released(host: Decider, session: string, ms: number, hitMs?: number): Decision {
  const hitAt = hitMs === undefined ? undefined : START + hitMs;
  return host.at(ms, [{ ...release(host.book, session), hitAt }], []);
}

/** When the slot of a release ends, after the start. */
function endOf({ outcomes: [outcome] }: Decision): number {
  if (outcome?.kind !== "released") throw new Error(`Expected a release, got ${outcome?.kind}`);
  return outcome.endsAt - START;
}

function taking(config: ConstructorParameters<typeof Decider>[0], count: number): Decider {
  const host = new Decider({ maxSlotPerHost: 10, maxSlotPerIp: -1, smoothReleaseIntervalMs: 0, ...config });
  const sessions = Array.from({ length: count }, (_, at) => `s${at}`);
  host.at(
    0,
    sessions.map((session) => arrive(session, "a", 0, LONG_MS)),
    sessions,
  );
  return host;
}

describe("slots that end by time", () => {
  const leases = [lease(3, 50), lease(1, 50), lease(2, 50), lease(5, 20), lease(4, 80)];

  test.each([[leases], [leases.toReversed()]])(
    "end in the order of their ends, then of their grants, whatever order a store returns",
    (records) => {
      const { notes } = deciderWith({ maxSlotPerHost: 10 }, records).at(100, [{ kind: "breaker", isOpen: false }], []);
      expect(notes.flatMap((note) => (note.kind === "reclaimed" ? [note.fence] : []))).toEqual([5, 1, 2, 3, 4]);
    },
  );

  test("lapse as offers in the order of their ends, then of their sessions", () => {
    const offer = (session: string, lapsesMs: number): BookRecord => ({
      kind: "offer",
      key: session,
      bucket: session,
      instance: "i",
      offeredAt: START,
      lapsesAt: START + lapsesMs,
      isProbe: false,
      width: 1,
    });
    const offers = [offer("d", 40), offer("c", 20), offer("a", 30), offer("b", 20)];
    for (const records of [offers, offers.toReversed()]) {
      const { notes } = deciderWith({ maxSlotPerHost: 10 }, records).at(100, [{ kind: "breaker", isOpen: false }], []);
      expect(notes.flatMap((note) => (note.kind === "uncollected" ? [note.session] : []))).toEqual([
        "b",
        "c",
        "a",
        "d",
      ]);
    }
  });
});

describe("a released slot", () => {
  test("has a minimum hold from a hit of exactly one lease time ago, and not from an older one", () => {
    const config = { minSlotHoldMs: 8_000, zombieTimeoutSeconds: 5 };
    const host = taking({ ...config, sessionIdleSeconds: 90 }, 2);
    for (const ms of [4_000, 8_000]) {
      const tokens = Array.from(host.book.all("lease"), ({ key: slotToken }) => slotToken);
      host.at(
        ms,
        tokens.map((slotToken) => ({ kind: "renew" as const, slotToken })),
        [],
      );
    }
    expect(endOf(released(host, "s0", 9_000, 4_000))).toBe(12_000);
    expect(endOf(released(host, "s1", 9_000, 3_999))).toBe(14_000);
  });

  test("waits for no spacing that the host no longer has", () => {
    const host = taking({ smoothReleaseIntervalMs: 1_000 }, 4);
    expect([released(host, "s0", 10), released(host, "s1", 10), released(host, "s2", 10)].map(endOf)).toEqual([
      10, 1_010, 2_010,
    ]);
    const off = { smoothReleaseIntervalMs: 0 };
    expect(endOf(host.at(20, [release(host.book, "s3")], [], off))).toBe(20);
  });

  test("is not spaced from releases of before the host had a spacing", () => {
    const host = taking({}, 2);
    released(host, "s0", 10);
    const on = { smoothReleaseIntervalMs: 1_000 };
    expect(endOf(host.at(20, [release(host.book, "s1")], [], on))).toBe(20);
  });

  test("starts no cooldown at a host without one, although it is held for its minimum", () => {
    const host = taking({ minSlotHoldMs: 1_000 }, 1);
    released(host, "s0", 10, 10);
    host.at(20, [arrive("s1", "a", 20, LONG_MS)], ["s1"]);
    expect(host.book.leaseOf("s1")).toBeDefined();
  });

  test("never shortens the cooldown that another slot of its bucket has started, and prolongs a shorter one", () => {
    const host = taking({ minSlotHoldMs: 9_000, ipCooldownSeconds: 5 }, 4);
    const cooldown = () => (host.book.get("cooldown", "a")?.until ?? 0) - START;
    released(host, "s0", 10);
    expect(cooldown()).toBe(5_010);
    released(host, "s1", 20);
    expect(cooldown()).toBe(5_020);
    released(host, "s2", 30, 30);
    expect(cooldown()).toBe(14_030);
    released(host, "s3", 40);
    expect(cooldown()).toBe(14_030);
  });
});

test("a session whose slot was released, and is still held for its minimum, has ended as released", async () => {
  const bench = new Bench({ minSlotHoldMs: 3_000 });
  const answer = await bench.ask("a", { waitMs: 1 });
  if (answer.result !== "granted") throw new Error(`Expected a slot, got ${answer.result}`);
  await bench.release(answer.slotToken, { hitUpstreamAtMs: bench.clock.now() });
  expect(await bench.held()).toBe(1);
  expect(await bench.queue.poll(answer.session, { waitMs: 0 })).toEqual({ result: "timeout", reason: "released" });
});

describe("a session that already has its slot", () => {
  test("changes nothing in the book when a call repeats, or a renewal gives no more time", () => {
    const host = taking({ zombieTimeoutSeconds: 5, maxHoldSeconds: 5 }, 1);
    const { head } = host.book;
    const slotToken = host.book.leaseOf("s0")?.key ?? "";
    host.at(0, [{ kind: "renew", slotToken }], []);
    host.at(0, [arrive("s0", "a", 0, LONG_MS)], ["s0"]);
    expect(host.book.head).toBe(head);
  });

  test("is remembered until the later deadline of a repeated first call, also while its released slot is still held", () => {
    const host = taking({ minSlotHoldMs: 3_000 }, 1);
    const keptMs = () => (host.book.leaseOf("s0")?.keepUntil ?? 0) - START;
    released(host, "s0", 10, 10);
    host.at(20, [arrive("s0", "a", 0, LONG_MS - 5)], ["s0"]);
    expect(keptMs()).toBe(LONG_MS);
    host.at(30, [arrive("s0", "a", 0, LONG_MS + 5)], ["s0"]);
    expect(keptMs()).toBe(LONG_MS + 5);
    expect(host.book.inFlight).toBe(1);
  });
});

describe("the ends that a host keeps", () => {
  const KEPT_MS = 600_000;
  const GRACE_MS = 10_000;
  const TOUCH = { kind: "report", status: 503 } as const;

  function ending(at: number, keepMs: number, endedMs: number): EndingRecord {
    return { kind: "ending", key: `e${at}`, end: "canceled", keepUntil: START + keepMs, endedAt: START + endedMs };
  }

  test("are forgotten 64 at a time, the first that ended first (END1)", () => {
    const all = Array.from({ length: 150 }, (_, at) => ending(at, 1, at));
    for (const records of [all, all.toReversed()]) {
      const host = deciderWith({}, records);
      const left = () => Array.from(host.book.all("ending"), ({ key }) => Number(key.slice(1))).sort((a, b) => a - b);
      host.at(20_000, [TOUCH], []);
      expect(left()).toEqual(Array.from({ length: 86 }, (_, at) => at + 64));
      host.at(20_001, [TOUCH], []);
      expect(left()).toEqual(Array.from({ length: 22 }, (_, at) => at + 128));
      host.at(20_002, [TOUCH], []);
      expect(left()).toEqual([]);
    }
  });

  test("are kept until exactly the time at which they are not needed any more, and then leave no trace", () => {
    for (const [keepMs, untilMs] of [
      [500, 500 + GRACE_MS],
      [KEPT_MS - GRACE_MS, KEPT_MS],
    ] as const) {
      const host = deciderWith({}, [ending(0, keepMs, 0)]);
      host.at(untilMs - 1, [TOUCH], []);
      expect(host.book.size("ending"), "before").toBe(1);
      host.at(untilMs, [TOUCH], []);
      expect(host.book.size("ending"), "at its end").toBe(0);
      expect(host.book.head.forgottenAt).toBeUndefined();
    }
  });

  test("raise the time up to which ends may be forgotten, if their sessions may still ask (END2)", () => {
    const host = deciderWith({}, [ending(0, KEPT_MS + 1, 3)]);
    host.at(KEPT_MS + 3, [TOUCH], []);
    expect(host.book.size("ending")).toBe(0);
    expect(host.book.head.forgottenAt).toBe(START + 3 + 1_000);
  });

  test("decide with the latest time at which a session had not ended whether it may join (END3)", () => {
    const at = (pendingMs: number | undefined) => {
      const records: BookRecord[] = [];
      const book = Book.of("h", "1.x", { head: { ...newHead(START, 0), forgottenAt: START + 500 }, records });
      const host = new Decider({}, book);
      const pendingAt = pendingMs === undefined ? undefined : START + pendingMs;
      const { outcomes } = host.at(600, [{ ...arrive("s", "a", 100, LONG_MS), isReturning: true, pendingAt }], ["s"]);
      return outcomes[0]?.kind;
    };
    expect([at(undefined), at(500), at(501)]).toEqual(["forgotten", "forgotten", "done"]);
  });

  test("count an arrival that is ahead of the store by more than a second as a time up to which ends are forgotten", () => {
    for (const [aheadMs, forgottenMs] of [
      [1_000, undefined],
      [1_001, 1_001],
    ] as const) {
      const host = deciderWith({}, []);
      host.at(0, [arrive("s", "a", aheadMs, LONG_MS)], ["s"]);
      const expected = forgottenMs === undefined ? undefined : START + forgottenMs;
      expect(host.book.head.forgottenAt).toBe(expected);
    }
  });
});
