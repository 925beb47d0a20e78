import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { AccountRecord, BookImage, BookRecord, ClassUse } from "@slotkeeper/queue";
import { Book, type Input } from "@slotkeeper/queue/internals";
import { indexDifference } from "@slotkeeper/testkit/simulator";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { arrive, Decider, release, START } from "./decider.ts";

/**
 * What a host keeps of classes and buckets that do not use it any more: USE4 of `use.ts`, CHARGED2 of `charged.ts`, and the same
 * for classes (`class-use.ts`). What is kept decides who is next when they return. What is not needed would pile up.
 */

const IDLE_MS = 5_000;
const LONG_MS = 900_000;
const HOST = { maxSlotPerIp: -1, maxWaitersPerIp: -1, sessionIdleSeconds: IDLE_MS / 1000, zombieTimeoutSeconds: 3_600 };
const BUDGET = { tokens: { limit: 1e9, perSeconds: 1 } };
/** Sums of use have rounding errors. */
const SLACK_MS = 0.01;

const CLASSES: NonNullable<FairQueueConfig["classes"]>[] = [
  { chat: { weight: 3 }, batch: { weight: 0.5 } },
  { chat: {}, batch: { weight: 2, ceiling: 1 }, default: { weight: 4 } },
];
const CONFIGS: FairQueueConfig[] = [
  {},
  { classes: CLASSES[0] ?? {} },
  { classes: CLASSES[1] ?? {} },
  { classes: CLASSES[0] ?? {}, keys: { tenant: { slots: 1 } } },
  { classes: CLASSES[0] ?? {}, order: "fifo" },
  { order: "budget:tokens", budgets: BUDGET },
  { classes: CLASSES[1] ?? {}, order: "budget:tokens", budgets: BUDGET },
];

interface Step {
  readonly afterMs: number;
  readonly kind: "ask" | "release" | "cancel" | "touch";
  readonly name: "default" | "chat" | "batch";
  readonly bucket: string;
  readonly weight: number;
  readonly cost: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  afterMs: fc.constantFrom(0, 1, 7, 100, 900, IDLE_MS - 1, IDLE_MS, 20_000),
  kind: fc.constantFrom<Step["kind"][]>("ask", "ask", "ask", "release", "release", "cancel", "touch"),
  name: fc.constantFrom<Step["name"][]>("default", "chat", "batch"),
  bucket: fc.constantFrom("a", "b", "c"),
  weight: fc.constantFrom(1, 1, 0.5, 3),
  cost: fc.constantFrom(1, 5, 40),
});

/** A host whose sessions all have an open poll. */
class History {
  readonly host: Decider;
  now = 0;
  readonly #config: FairQueueConfig;
  #asked = 0;
  #sessions: string[] = [];

  constructor(config: FairQueueConfig, slots: number) {
    this.host = new Decider({ ...HOST, maxSlotPerHost: slots, ...config });
    this.#config = config;
  }

  /** Returns whether the decision changed the book. */
  take(step: Step): boolean {
    this.now += step.afterMs;
    const { head } = this.host.book;
    this.host.at(this.now, this.#inputsOf(step), this.#sessions);
    return this.host.book.head !== head;
  }

  #inputsOf({ kind, name, bucket, weight, cost }: Step): Input[] {
    const { book } = this.host;
    // A change that concerns no line.
    if (kind === "touch") return [{ kind: "limits", limits: { slotsPerBucket: 100 + (this.now % 7) } }];
    if (kind === "release") {
      const [lease] = book.all("lease");
      return lease === undefined ? [] : [release(book, lease.session)];
    }
    if (kind === "cancel") {
      const [waiter] = Array.from(book.all("waiter")).toReversed();
      return waiter === undefined ? [] : [cancel(waiter.key, waiter.bucket, this.now)];
    }
    const session = `s${this.#asked++}`;
    this.#sessions.push(session);
    const { classes, keys, budgets } = this.#config;
    // A host refuses what it does not know.
    const demand = {
      ...(budgets === undefined ? {} : { cost: { tokens: cost } }),
      ...(keys === undefined ? {} : { keys: { tenant: bucket } }),
      ...(classes === undefined ? {} : { class: name }),
    };
    return [{ ...arrive(session, bucket, this.now, this.now + LONG_MS), weight, demand }];
  }
}

function cancel(session: string, bucket: string, ms: number): Input {
  return {
    kind: "end",
    session,
    bucket,
    arrivedAt: START + ms,
    end: "canceled",
    keepUntil: START + ms,
    at: START + ms,
  };
}

/** What a stored host shows of the lines and classes that are active, and of the meters. */
class Stored {
  readonly now: number;
  readonly accounts: ReadonlyMap<string, AccountRecord>;
  readonly hasClasses: boolean;
  readonly classes: ReadonlyMap<string, ClassUse>;
  readonly #progress: number;
  readonly #lines: ReadonlySet<string>;
  readonly #waitedFor: ReadonlySet<string>;

  constructor({ head, records }: BookImage) {
    this.now = head.now;
    this.accounts = new Map(records.filter(isAccount).map((account) => [account.key, account]));
    this.hasClasses = head.classes !== undefined;
    this.classes = new Map(Object.entries(head.classes ?? {}));
    this.#progress = head.progress;
    this.#waitedFor = new Set(
      records.flatMap((one) => (one.kind === "waiter" ? (one.demand?.class ?? "default") : [])),
    );
    this.#lines = new Set(records.flatMap((record) => activeLineOf(record) ?? []));
  }

  isActive(line: string): boolean {
    return this.#lines.has(line);
  }

  isActiveClass(name: string): boolean {
    return Array.from(this.#lines).some((line) => classOfLine(line) === name);
  }

  /** Also by requests that stand at a key. */
  isWaitedFor(name: string): boolean {
    return this.#waitedFor.has(name);
  }

  hasAccounts(name: string): boolean {
    return Array.from(this.accounts.keys()).some((line) => classOfLine(line) === name);
  }

  /** Whether the meter of its class is there, or that of a host without classes. */
  hasMeter(line: string): boolean {
    return !this.hasClasses || this.classes.has(classOfLine(line));
  }

  /** How far the use of a line is ahead of the meter of its class, in slot time. */
  leadOf({ key, usedMs, weight }: AccountRecord): number {
    const meter = this.hasClasses ? (this.classes.get(classOfLine(key))?.progress ?? 0) : this.#progress;
    return usedMs - meter * weight;
  }

  leadOfClass({ usedMs, weight }: ClassUse): number {
    return usedMs - this.#progress * weight;
  }
}

function isAccount(record: BookRecord): record is AccountRecord {
  return record.kind === "account";
}

function classOfLine(line: string): string {
  return line.includes("\n") ? (line.split("\n")[0] ?? "") : "default";
}

/** The line that holds a slot, or waits inside the pool. */
function activeLineOf(record: BookRecord): string | undefined {
  if (record.kind === "lease") return lineOf(record.bucket, record.charge?.asked?.class);
  return record.kind === "waiter" && record.isInside ? lineOf(record.bucket, record.demand?.class) : undefined;
}

function lineOf(bucket: string, name = "default"): string {
  return name === "default" ? bucket : `${name}\n${bucket}`;
}

const steps = fc.array(step, { minLength: 20, maxLength: 40 });
const slots = fc.integer({ min: 1, max: 4 });

/** When each line and class was last active. */
class LastActive {
  readonly #at = new Map<string, number>();

  /** Call with the state before the decision of this time and after it: what was active before was so until now. */
  note(names: Iterable<string>, now: number): void {
    for (const name of names) this.#at.set(name, now);
  }

  isRecent(name: string, now: number): boolean {
    return now - (this.#at.get(name) ?? Number.NEGATIVE_INFINITY) < IDLE_MS;
  }
}

/** Checks the book after each decision of random histories. */
function checkHistories(config: FairQueueConfig, check: Check): void {
  const property = fc.property(slots, steps, (slots, steps) => checkHistory(new History(config, slots), steps, check));
  fc.assert(property, { numRuns: 6 });
}

function checkHistory(history: History, steps: readonly Step[], check: Check): void {
  const last = new LastActive();
  let before = new Stored(history.host.book.image());
  for (const step of steps) {
    const isChanged = history.take(step);
    if (!isChanged) continue;
    const after = new Stored(history.host.book.image());
    for (const stored of [before, after]) {
      last.note(
        Array.from(stored.accounts.keys()).filter((line) => stored.isActive(line)),
        after.now,
      );
      last.note(
        Array.from(stored.classes.keys())
          .filter((name) => stored.isActiveClass(name))
          .map(ofClass),
        after.now,
      );
    }
    check(before, after, last);
    before = after;
  }
}

type Check = (before: Stored, after: Stored, last: LastActive) => void;

const ofClass = (name: string) => `class ${name}`;

describe.each(CONFIGS)("of a bucket without slots and waiters, at a host with %j", (config) => {
  test("nothing is kept but a use ahead of the meter, and a charge that is not older than the idle period", () => {
    checkHistories(config, (_, after, last) => {
      for (const account of after.accounts.values()) {
        if (after.isActive(account.key)) continue;
        const isRecent = last.isRecent(account.key, after.now);
        if (account.charged !== undefined) expect(isRecent, "the charge").toBe(true);
        else expect(after.leadOf(account), "the use").toBeGreaterThan(0);
      }
    });
  });

  test("a use ahead of the meter and a charge are kept for the idle period", () => {
    checkHistories(config, (before, after, last) => {
      for (const [line, account] of before.accounts) {
        const kept = after.accounts.get(line);
        if (account.charged !== undefined && last.isRecent(line, after.now))
          expect(kept?.charged, "the charge").toBeDefined();
        if (kept !== undefined || before.isActive(line)) continue;
        const stored = after.hasMeter(line) ? after : before;
        // The meter of a class that ended and was forgotten in one decision is not known any more.
        const isKnown = stored === after || !before.isActiveClass(classOfLine(line));
        if (isKnown) expect(stored.leadOf(account), "the use").toBeLessThan(SLACK_MS);
      }
    });
  });
});

const WITH_CLASSES = CONFIGS.filter(({ classes }) => classes !== undefined);

describe.each(WITH_CLASSES)("of a class without slots and waiters, at a host with %j", (config) => {
  test("nothing is kept but a use ahead of the meter, buckets of which something is kept, and a charge of the idle period", () => {
    checkHistories(config, (_, after, last) => {
      for (const [name, use] of after.classes) {
        if (after.isActiveClass(name)) continue;
        const isRecent = last.isRecent(ofClass(name), after.now);
        if (use.charged !== undefined) expect(isRecent, "the charge").toBe(true);
        else if (!after.hasAccounts(name) && !after.isWaitedFor(name))
          expect(after.leadOfClass(use), "the use").toBeGreaterThan(0);
      }
    });
  });

  test("its use ahead of the meter, the meter of buckets of which something is kept, and its charge in the idle period are kept", () => {
    checkHistories(config, (before, after, last) => {
      for (const [name, use] of before.classes) {
        const kept = after.classes.get(name);
        if (use.charged !== undefined && last.isRecent(ofClass(name), after.now))
          expect(kept?.charged, "the charge").toBeDefined();
        if (kept !== undefined || before.isActiveClass(name)) continue;
        expect(after.hasAccounts(name), "the meter").toBe(false);
        expect(after.leadOfClass(use), "the use").toBeLessThan(SLACK_MS);
      }
    });
  });
});

describe.each(WITH_CLASSES)("a host with %j", (config) => {
  test("has the same index after each decision as one that is read from the store (BOOK4)", () => {
    const property = fc.property(slots, steps, (slots, steps) => {
      const history = new History(config, slots);
      for (const step of steps) {
        history.take(step);
        const { book } = history.host;
        if (book.limits === undefined) continue;
        const read = Book.of("h", book.tag, book.image());
        read.index.useTime(...book.index.time);
        expect(indexDifference(book, read)).toBeUndefined();
      }
    });
    fc.assert(property, { numRuns: 6 });
  });
});
