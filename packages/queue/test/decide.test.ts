import type { FairQueueConfig } from "@slotkeeper/protocol";
import { Book, type Decision, decide, type Input, resolveHost, resolveOptions } from "@slotkeeper/queue";
import { describe, expect, test } from "vitest";

/** Decisions that the comparison with the reference book (`testkit/test/reference.prop.test.ts`) showed to be wrong. */

const START = 1_000_000;

/** One host and one instance that decides. */
class Decider {
  readonly book = new Book("h", START);
  #secrets = 0;
  readonly #config: FairQueueConfig;

  constructor(config: FairQueueConfig) {
    this.#config = config;
  }

  /** Decides at a time after the start. The named sessions have an open poll. */
  at(ms: number, inputs: readonly Input[], polled: readonly string[], change: FairQueueConfig = {}): Decision {
    const options = resolveOptions({ ...this.#config, ...change });
    const { policy } = resolveHost(options, undefined);
    const now = START + ms;
    const decision = decide(this.book, inputs, {
      ...options,
      now,
      instance: "i",
      limits: { policy, loadedAt: now, hostname: undefined },
      isSemaphore: false,
      mostEnds: 100,
      newSecret: () => `${this.#secrets++}`,
      isPolledHere: (session) => polled.includes(session),
      awayHere: () => undefined,
      isTokenSent: () => true,
      seenAt: () => undefined,
    });
    if (this.book.isChanged) this.book.keep(`${ms}.x`);
    return decision;
  }
}

function arrive(session: string, bucket: string, ms: number, deadlineMs: number): Input {
  const times = { arrivedAt: START + ms, deadlineAt: START + deadlineMs, openMs: 1_000 };
  return { kind: "arrive", session, bucket, weight: 1, limit: undefined, ...times };
}

function release(book: Book, session: string): Input {
  const slotToken = book.leaseOf(session)?.key ?? "";
  return { kind: "release", slotToken, hitAt: undefined, status: undefined };
}

describe("a decision", () => {
  test("makes no lease from an offer if the limit was lowered since", () => {
    const host = new Decider({ maxSlotPerHost: 2, maxSlotPerIp: -1 });
    host.at(0, [arrive("s1", "a", 0, 9_000), arrive("s2", "b", 0, 9_000)], ["s1"]);
    expect(host.book.size("offer")).toBe(1);
    host.at(10, [], ["s2"], { maxSlotPerHost: 1 });
    expect(host.book.inFlight).toBe(1);
    expect(host.book.get("waiter", "s2")).toBeDefined();
  });

  test("grants a slot as soon as the cooldown of the bucket is over", () => {
    const host = new Decider({ maxSlotPerHost: 2, ipCooldownSeconds: 1 });
    host.at(0, [arrive("s1", "a", 0, 9_000)], ["s1"]);
    host.at(10, [release(host.book, "s1")], []);
    host.at(900, [arrive("s2", "a", 900, 9_000)], ["s2"]);
    expect(host.book.leaseOf("s2")).toBeUndefined();
    host.at(1_010, [], ["s2"]);
    expect(host.book.leaseOf("s2")).toBeDefined();
  });

  test("grants no second slot to a session whose first call was repeated while its slot ended", () => {
    const host = new Decider({ maxSlotPerHost: 2, smoothReleaseIntervalMs: 100 });
    host.at(0, [arrive("s1", "a", 0, 300), arrive("s2", "b", 0, 300)], ["s1", "s2"]);
    host.at(10, [release(host.book, "s2"), release(host.book, "s1")], []);
    expect(host.book.leaseOf("s1")?.isReleased).toBe(true);
    host.at(20, [arrive("s1", "a", 0, 2_000)], ["s1"]);
    const { outcomes } = host.at(1_000, [arrive("s1", "a", 0, 2_000)], ["s1"]);
    expect(outcomes[0]?.kind).toBe("ended");
    expect(host.book.leaseOf("s1")).toBeUndefined();
  });

  test("keeps the end of an earlier session with the same id apart", () => {
    const host = new Decider({ maxSlotPerHost: 1, smoothReleaseIntervalMs: 100, minSlotHoldMs: 200 });
    const at = { arrivedAt: START, keepUntil: START + 300, at: START, isUndelivered: false };
    host.at(0, [arrive("s1", "a", 0, 300), { kind: "end", session: "s1", bucket: "a", end: "timeout", ...at }], []);
    host.at(300, [arrive("s1", "a", 300, 2_000)], ["s1"]);
    const { key: slotToken = "" } = host.book.leaseOf("s1") ?? {};
    host.at(310, [{ kind: "release", slotToken, hitAt: START + 310, status: undefined }], []);
    host.at(320, [arrive("s1", "a", 300, 2_000)], ["s1"]);
    expect(host.book.get("session", "s1")?.keepUntil).toBe(START + 300);
  });
});
