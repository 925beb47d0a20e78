import { type BookRecord, snapshotOf } from "@slotkeeper/queue";
import { Book, type Decision } from "@slotkeeper/queue/internals";
import { describe, expect, test } from "vitest";
import { type Arrival, arrive, Decider, release, START } from "./decider.ts";

/** The buckets of classes: who is next inside a class, and what a bucket has in all of them. */

const LONG_MS = 900_000;
const HOST = { maxSlotPerIp: -1, maxWaitersPerHost: 1_000, zombieTimeoutSeconds: 900 } as const;

function asked(session: string, bucket: string, name: string, ms: number, width = 1): Arrival {
  return { ...arrive(session, bucket, ms, LONG_MS), demand: { class: name, width } };
}

function granted({ notes }: Decision): string[] {
  return notes.flatMap((note) => (note.kind === "granted" ? [note.session] : []));
}

function revoke(host: Decider, session: string) {
  return { kind: "revoke", fence: host.book.leaseOf(session)?.fence ?? 0 } as const;
}

function shareOf(host: Decider, ms: number, name: string): number | undefined {
  return snapshotOf("h", host.book.image(), START + ms).classes.find((one) => one.name === name)?.share;
}

describe("inside a class whose share is one slot", () => {
  test("a light bucket gets its part of the slot time, however much a heavier one wants", () => {
    const host = new Decider({ ...HOST, maxSlotPerHost: 2, classes: { chat: {}, batch: {} } });
    const sessions: Arrival[] = [];
    for (let at = 0; at < 40; at++) {
      sessions.push({ ...asked(`heavy-${at}`, "heavy", "chat", 0), weight: 3 });
      sessions.push(asked(`light-${at}`, "light", "chat", 0), asked(`other-${at}`, "other", "batch", 0));
    }
    const polled = sessions.map(({ session }) => session);
    const count = { heavy: 0, light: 0, other: 0 };
    let inputs: Parameters<Decider["at"]>[1] = sessions;
    for (let round = 0; round < 40; round++) {
      for (const session of granted(host.at(round * 100, inputs, polled)))
        count[session.split("-")[0] as keyof typeof count]++;
      inputs = Array.from(host.book.all("lease"), ({ session }) => release(host.book, session));
    }
    expect(count.other).toBe(40);
    expect(count.light).toBeGreaterThanOrEqual(9);
    expect(count.light).toBeLessThanOrEqual(11);
  });
});

describe("a wide request", () => {
  test("is not first if its class has more than its share: then the best of those that fit is granted", () => {
    const classes = { one: { ceiling: 2 }, two: { ceiling: 2 }, chat: {} };
    const host = new Decider({ ...HOST, maxSlotPerHost: 10, classes });
    const held = Array.from({ length: 7 }, (_, at) => asked(`held-${at}`, "busy", "chat", 0));
    const first = [...held, asked("one-held", "a", "one", 0), asked("two-held", "b", "two", 0)];
    host.at(
      0,
      first,
      first.map(({ session }) => session),
    );
    // `chat` may have 6 of the 10 slots: the others may have 2 each, and want them. They lack room for what they want.
    const second = [asked("one-wide", "a", "one", 1, 2), asked("two-wide", "b", "two", 1, 2)];
    host.at(1, second, ["one-wide", "two-wide"]);
    const decision = host.at(2, [asked("wide", "c", "chat", 2, 2)], ["one-wide", "two-wide", "wide"]);
    expect([granted(decision), host.book.head.first]).toEqual([[], undefined]);
    expect(granted(host.at(3, [asked("narrow", "d", "chat", 3)], ["one-wide", "two-wide", "wide", "narrow"]))).toEqual([
      "narrow",
    ]);
  });

  test("changes who is next: while some are wide, the use decides among buckets that are not far above their share", () => {
    for (const [width, expected] of [
      [1, ["a1", "c1"]],
      [2, ["a1", "a2"]],
    ] as const) {
      const host = new Decider({ ...HOST, maxSlotPerHost: 2 });
      const early = [arrive("b0", "b", 0, LONG_MS), arrive("b00", "b", 0, LONG_MS)];
      host.at(0, early, ["b0", "b00"]);
      const waiting = ["a1", "a2", "b1", "b2"].map((session) => arrive(session, session[0] ?? "", 1, LONG_MS));
      const polled = [...waiting.map(({ session }) => session), "c1"];
      host.at(1, waiting, polled);
      // `a` has used nothing for ten seconds. `c` joins at the meter.
      host.at(10_000, [{ ...arrive("c1", "c", 10_000, LONG_MS), demand: { width } }], polled);
      const decision = host.at(10_001, [release(host.book, "b0"), release(host.book, "b00")], polled);
      expect(granted(decision)).toEqual(expected);
    }
  });
});

describe("the slots of a bucket in all its classes", () => {
  const CLASSES = { classes: { chat: {}, batch: {}, bulk: {} } };

  test("count for its limit, also after it was forgotten in one of them", () => {
    const host = new Decider({ ...HOST, maxSlotPerHost: 9, maxSlotPerIp: 3, ...CLASSES });
    const first = ["chat", "batch", "bulk"].map((name) => asked(name, "a", name, 0));
    const polled = ["chat", "batch", "bulk", "more", "most"];
    expect(granted(host.at(0, first, polled))).toHaveLength(3);
    expect(granted(host.at(1, [asked("more", "a", "chat", 1)], polled))).toEqual([]);
    expect(granted(host.at(2, [release(host.book, "batch")], polled))).toEqual(["more"]);
    expect(granted(host.at(3, [asked("most", "a", "bulk", 3)], polled))).toEqual([]);
    expect(granted(host.at(4, [release(host.book, "bulk")], polled))).toEqual(["most"]);
  });

  test("count when its limit is lowered: an offer above it becomes no slot", () => {
    for (const names of [
      ["chat", "batch"],
      ["chat", "chat"],
      ["default", "chat"],
    ] as const) {
      const host = new Decider({ ...HOST, maxSlotPerHost: 9, maxSlotPerIp: 2, ...CLASSES });
      host.at(0, [asked("s0", "a", names[0], 0)], ["s0"]);
      host.at(1, [asked("s1", "a", names[1], 1)], []);
      expect(host.book.size("offer")).toBe(1);
      host.at(2, [], ["s1"], { maxSlotPerIp: 1 });
      expect([host.book.inFlight, host.book.leaseOf("s1")]).toEqual([1, undefined]);
    }
  });

  test("count for what its classes want: a class whose buckets are all at their limit leaves its share to others", () => {
    const host = new Decider({ ...HOST, maxSlotPerHost: 4, maxSlotPerIp: 2, ...CLASSES });
    const first = [asked("s0", "a", "batch", 0), asked("s1", "a", "batch", 0), asked("s2", "b", "bulk", 0)];
    host.at(0, [...first, asked("s3", "c", "bulk", 0)], ["s0", "s1", "s2", "s3"]);
    const waiting = [asked("s4", "a", "chat", 1), asked("s5", "b", "bulk", 1)];
    host.at(1, waiting, ["s4", "s5"]);
    // Two slots are held by `batch`, which wants no more; and `chat` may have none for its only bucket.
    expect(shareOf(host, 1, "bulk")).toBe(2);
    expect(granted(host.at(2, [revoke(host, "s3")], ["s4", "s5"]))).toEqual(["s5"]);
    expect(granted(host.at(3, [revoke(host, "s0")], ["s4", "s5"]))).toEqual(["s4"]);
  });
});

test("buckets at their limit are reported in the order of their classes, whatever order a store returns", () => {
  const config = { ...HOST, maxSlotPerHost: 5, maxSlotPerIp: 1, classes: { aa: {}, zz: {}, mm: {} } };
  const host = new Decider(config);
  const names = ["zz", "default", "aa", "mm"];
  const first = names.map((name) => asked(`held-${name}`, name, name, 0));
  host.at(
    0,
    first,
    first.map(({ session }) => session),
  );
  const second = names.map((name) => asked(`more-${name}`, name, name, 1));
  const { head, records } = host.book.image();
  const images: (readonly BookRecord[])[] = [records, records.toReversed()];
  for (const stored of images) {
    const other = new Decider(config, Book.of("h", host.book.tag, { head, records: stored }));
    const { notes } = other.at(1, second, []);
    const refused = notes.flatMap((note) => (note.kind === "refused" ? [note.bucket] : []));
    expect(refused).toEqual(["aa", "default", "mm", "zz"]);
  }
});

test("an order that is changed while sessions wait decides the next grant, in every class", () => {
  for (const classes of [{}, { chat: {} }]) {
    const name = "chat" in classes ? "chat" : "default";
    const ask = (session: string, ms: number): Arrival => ({
      ...arrive(session, session[0] ?? "", ms, LONG_MS),
      ...(name === "default" ? {} : { demand: { class: name } }),
    });
    const polled = ["a0", "a1", "a2", "b1", "b2"];
    const host = new Decider({ ...HOST, maxSlotPerHost: 2, classes });
    host.at(0, [ask("a0", 0), ask("b0", 0)], ["a0", "b0"]);
    // `a` still has a slot. By slot time `b` is next, by age `a`.
    host.at(10, [ask("a1", 10)], polled);
    host.at(20, [ask("b1", 20), ask("a2", 21), ask("b2", 22)], polled);
    expect(granted(host.at(100, [release(host.book, "b0")], polled, { order: "fifo" }))).toEqual(["a1"]);
    expect(granted(host.at(200, [release(host.book, "a0")], polled, { order: "slot-seconds" }))).toEqual(["b1"]);
  }
});

describe("what an instance writes", () => {
  test("is nothing when its configuration is read again without a change and the host is not in use", () => {
    const host = new Decider(HOST);
    host.at(0, [arrive("s", "a", 0, LONG_MS)], ["s"]);
    host.at(10, [release(host.book, "s")], []);
    const { head, limits } = host.book;
    // The same settings, in other objects.
    host.at(1_000, [], [], { ...HOST });
    expect(host.book.head).toBe(head);
    expect(host.book.limits).toBe(limits);
    host.at(2_000, [], [], { maxSlotPerHost: 7 });
    expect(host.book.head.slots).toBe(7);
  });

  test("is nothing when an operator repeats a command", () => {
    const host = new Decider(HOST);
    const limits = { kind: "limits", limits: { slots: 3 } } as const;
    const pause = { kind: "pause", isPaused: true } as const;
    host.at(0, [limits, pause], []);
    const { head } = host.book;
    for (const repeated of [limits, pause]) host.at(1_000, [repeated], []);
    expect(host.book.head).toBe(head);
    host.at(2_000, [{ kind: "limits", limits: undefined }], []);
    expect([host.book.live, host.book.isPaused]).toEqual([{ isPaused: true }, true]);
    host.at(3_000, [{ kind: "pause", isPaused: false }], []);
    expect(host.book.live).toBeUndefined();
  });

  test("is nothing when an operator closes the breaker of a new host", () => {
    const host = new Decider(HOST);
    host.at(0, [arrive("s", "a", 0, LONG_MS)], ["s"]);
    const { head } = host.book;
    host.at(0, [{ kind: "breaker", isOpen: false }], []);
    expect(host.book.head).toBe(head);
  });

  test("keeps the name of the host when a caller sends only its hash", () => {
    const host = new Decider(HOST);
    host.at(0, [arrive("s", "a", 0, LONG_MS)], ["s"]);
    expect(host.book.head.hostname).toBeUndefined();
    host.hostname = "api.example";
    host.at(1, [], []);
    expect(host.book.head.hostname).toBe("api.example");
    const { head } = host.book;
    host.at(1, [], []);
    expect(host.book.head).toBe(head);
    host.hostname = undefined;
    host.at(2, [], []);
    expect(host.book.head.hostname).toBe("api.example");
  });
});
