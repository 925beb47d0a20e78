import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { Book, usedPerWeight } from "@slotkeeper/queue/internals";
import { describe, expect, test } from "vitest";
import { arrive, Decider, release, START } from "./decider.ts";

/** What a book promises about records that no decision of ours wrote, and about what it never does. */

type Lease = NonNullable<ReturnType<Book["leaseOf"]>>;

/** The slot of a direct SQL caller. */
function direct(key: string, ms: number, bucket = "a"): Lease {
  const times = { grantedAt: START + ms, endsAt: START + 60_000, keepUntil: START + 60_000 };
  const is = { isReleased: false, isProbe: false };
  return { kind: "lease", key, session: key, fence: 100 + ms, bucket, instance: "", width: 1, ...times, ...is };
}

/** A host at which bucket `a` waits, and another holds the only slot of ours. */
function waitingHost(): Decider {
  const decider = new Decider({ maxSlotPerHost: 3, maxSlotPerIp: 1, zombieTimeoutSeconds: 600 });
  decider.at(0, [arrive("s0", "a", 0, 60_000)], ["s0"]);
  decider.at(0, [arrive("s1", "a", 0, 60_000)], ["s1"]);
  return decider;
}

const usedAt = (book: Book, ms: number) => {
  const line = book.index.line("a");
  if (line === undefined) throw new Error("Expected bucket a to have a line");
  return usedPerWeight(line, START + ms);
};

describe("the slots of direct SQL callers, who charge no account", () => {
  /** Another instance commits at this time. */
  const follow = (book: Book, ms: number, change: { puts?: Lease[]; dels?: string[] }) => {
    const { puts = [], dels = [] } = change;
    const head = { ...book.head, now: START + ms };
    book.follow({ head, puts, dels: dels.map((key) => ["lease", key] as const) }, `${ms}.y`);
  };

  test("count as use from their grant to their end", () => {
    const { book } = waitingHost();
    follow(book, 1_000, { puts: [direct("d", 1_000)] });
    // Bucket a holds its own slot all the time.
    expect(usedAt(book, 1_000)).toBe(1_000);
    expect(usedAt(book, 3_000)).toBe(5_000);
    follow(book, 4_000, { dels: ["d"] });
    expect(usedAt(book, 4_000)).toBe(7_000);
    expect(usedAt(book, 6_000)).toBe(9_000);
  });

  test("count once if they are granted and end in the same read", () => {
    const { book } = waitingHost();
    follow(book, 2_000, { puts: [direct("d", 1_000), direct("e", 2_000)] });
    follow(book, 2_000, { dels: ["e"] });
    expect(usedAt(book, 3_000)).toBe(3_000 + 2_000);
  });

  test("count as much when the host is read anew, whatever the order of its records", () => {
    const { book } = waitingHost();
    follow(book, 1_000, { puts: [direct("d", 1_000)] });
    const { head, records } = book.image();
    for (const ordered of [[...records], records.toReversed()]) {
      expect(usedAt(Book.of("h", "1.x", { head, records: ordered }), 3_000)).toBe(5_000);
    }
  });

  test("count as much after a decision on the host was undone", () => {
    const decider = waitingHost();
    const { book } = decider;
    follow(book, 1_000, { puts: [direct("d", 1_000)] });
    book.begin();
    book.moveTo(START + 2_000);
    for (const kind of ["lease", "account"] as const)
      for (const { key } of Array.from(book.all(kind))) book.del(kind, key);
    book.undo();
    expect(usedAt(book, 3_000)).toBe(5_000);
  });

  test("count as much if another instance has charged the account in the same read, whatever the order of its records", () => {
    for (const isReversed of [false, true]) {
      const { book } = waitingHost();
      const account = book.get("account", "a");
      if (account === undefined) throw new Error("Expected an account");
      const charged = { ...account, usedMs: 2_000, asOf: START + 2_000 };
      const records = [charged, direct("d", 3_000)];
      book.follow(
        { head: { ...book.head, now: START + 3_000 }, puts: isReversed ? records.toReversed() : records, dels: [] },
        "2.y",
      );
      expect(usedAt(book, 4_000)).toBe(5_000);
    }
  });

  test("are charged with the slots of sessions when these end", () => {
    const decider = waitingHost();
    const { book } = decider;
    follow(book, 1_000, { puts: [direct("d", 1_000)] });
    decider.at(3_000, [release(book, "s0")], ["s1"]);
    expect(book.get("account", "a")).toMatchObject({ usedMs: 5_000, asOf: START + 3_000 });
  });
});

test("the head is copied before the first write, and not written again for a time that has passed already", () => {
  const { book } = waitingHost();
  const before = book.head;
  book.begin();
  book.moveTo(before.meterAt);
  book.runMeter();
  expect(book.isChanged).toBe(false);
  expect(book.head).toBe(before);
  book.moveTo(before.meterAt + 1);
  book.runMeter();
  expect(book.isChanged).toBe(true);
  expect(before.meterAt).toBe(book.head.meterAt - 1);
});

test("a book says what is missing: the limits, or the host", () => {
  const book = new Book("h", START);
  expect(() => book.policy).toThrow("The book of host h has no limits yet");
  const forgotten = { head: undefined, puts: [], dels: [] };
  expect(() => book.follow(forgotten, undefined)).toThrow("The host h was forgotten: there is no book to follow");
});

test("a record that was made and deleted in one decision is no change of the store", () => {
  const { book } = waitingHost();
  book.begin();
  book.put(direct("d", 0));
  book.del("lease", "d");
  expect(book.changes()).toMatchObject({ puts: [], dels: [] });
  book.del("lease", "no lease's");
  expect(book.changes()).toMatchObject({ puts: [], dels: [] });
});

test("limits that replace equal ones are in force at once, with every line at its new limit", () => {
  const { book } = waitingHost();
  expect(book.index.line("a")?.limit).toBe(1);
  const { policy } = resolveHost(resolveOptions({ maxSlotPerHost: 3, maxSlotPerIp: 2 }), undefined);
  const limits = book.limits;
  if (limits === undefined) throw new Error("Expected limits");
  book.put({ ...limits, policy, loadedAt: START + 1 });
  expect(book.policy).toMatchObject({ slotsPerBucket: 2 });
  expect([...book.index.lines].find(({ bucket }) => bucket === "a")?.limit).toBe(2);
});
