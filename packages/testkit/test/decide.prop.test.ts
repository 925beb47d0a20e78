import type { Demand, FairQueueConfig } from "@slotkeeper/protocol";
import { type BookImage, type Changes, resolveHost, resolveOptions } from "@slotkeeper/queue";
import { Book, type DecideContext, decide, type Input } from "@slotkeeper/queue/internals";
import { imageDifference, indexDifference } from "@slotkeeper/testkit/simulator";
import * as fc from "fast-check";
import { expect, test } from "vitest";

/**
 * The decision on random histories: BOOK2, BOOK4, DECIDE1 to DECIDE4, DECIDE6 and DECIDE8 of `@slotkeeper/queue`, for hosts
 * with every kind of limit. A host keeps so few ends that END1 to END3 matter for DECIDE2.
 */

const BASE: FairQueueConfig = {
  maxSlotPerHost: 2,
  maxSlotPerIp: 1,
  maxWaitersPerHost: 4,
  minSlotHoldMs: 30,
  zombieTimeoutSeconds: 0.4,
  collectMs: 100,
  defaultGrantedCleanupDelay: 0.1,
  breaker: { consecutiveErrors: 2, openSeconds: 0.2 },
};
const WIDE: FairQueueConfig = { ...BASE, maxSlotPerHost: 6, maxSlotPerIp: 5, maxWaitersPerHost: 5, maxWaitersPerIp: 3 };
const CLASSES = { chat: { weight: 3, floor: 1 }, batch: { weight: 0.5, ceiling: 3 } };
const BUDGETS = { tokens: { limit: 20, perSeconds: 0.5, default: 2 } };
const KEYS = {
  tenant: { slots: 3, budgets: { calls: { limit: 3, perSeconds: 0.4, default: 1 } }, for: { t1: { slots: 1 } } },
};

/** The limits of a host, and what changes while it is used. */
interface Host {
  readonly config: FairQueueConfig;
  readonly change: FairQueueConfig;
}

const HOSTS: Readonly<Record<string, Host>> = {
  "slots and their use": { config: BASE, change: { maxWaitersPerHost: 2 } },
  arrival: { config: { ...WIDE, order: "fifo" }, change: { maxSlotPerIp: 2 } },
  classes: { config: { ...WIDE, classes: CLASSES }, change: { classes: { chat: {}, bulk: { ceiling: 2 } } } },
  "keys and budgets": {
    config: { ...WIDE, budgets: BUDGETS, keys: KEYS },
    change: { budgets: { tokens: { limit: 10, perSeconds: 1 } }, keys: { tenant: { slots: 1 } } },
  },
  "a budget, with classes": {
    config: {
      ...WIDE,
      budgets: BUDGETS,
      classes: { chat: { weight: 3 }, batch: { ceiling: 3 } },
      order: "budget:tokens",
    },
    change: { classes: { chat: { weight: 0.5 } } },
  },
  "turns, while it is hot": {
    config: {
      ...WIDE,
      pollIntervalMs: 20,
      weightedScheduler: { enabled: true, hotPendingMin: 1, hotPendingFactor: 0.1, coldAvgWaitMs: 1, hotAvgWaitMs: 5 },
    },
    change: { minSlotHoldMs: 0 },
  },
};

const SESSIONS = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
const INSTANCES = ["i0", "i1"];
const MOST_ENDS = 1;
const LIFE_MS = 2_000;

/** One instance decides on the inputs of a few milliseconds. */
interface Step {
  readonly afterMs: number;
  readonly instance: string;
  readonly polled: readonly string[];
  readonly asks: readonly Ask[];
  /** With the changed limits. */
  readonly isChanged: boolean;
  /** Then a direct SQL caller takes a slot for this bucket, if there is one. */
  readonly directly: string | undefined;
}

interface Ask {
  readonly kind: "arrive" | "away" | "end" | "cancel" | "release" | "renew" | "return" | "report" | "dead";
  readonly session: string;
  readonly bucket: string;
  /** What it asks for, at a host that has such limits. */
  readonly width: number;
  readonly cost: number;
  readonly tenant: string;
  readonly class: string;
}

const ask: fc.Arbitrary<Ask> = fc.record({
  kind: fc.constantFrom<Ask["kind"][]>(
    "arrive",
    "arrive",
    "arrive",
    "away",
    "end",
    "cancel",
    "release",
    "release",
    "renew",
    "return",
    "report",
    "dead",
  ),
  session: fc.constantFrom(...SESSIONS),
  bucket: fc.constantFrom("", "a", "b"),
  width: fc.constantFrom(1, 1, 1, 2, 3),
  cost: fc.constantFrom(0, 2, 5, 15),
  tenant: fc.constantFrom("t0", "t1", "t 2"),
  class: fc.constantFrom("default", "chat", "batch"),
});

const history: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    afterMs: fc.constantFrom(0, 1, 20, 60, 300),
    instance: fc.constantFrom(...INSTANCES),
    polled: fc.subarray(SESSIONS),
    asks: fc.array(ask, { maxLength: 4 }),
    isChanged: fc.constantFrom(false, false, false, true),
    directly: fc.constantFrom(undefined, undefined, undefined, undefined, "a", "b"),
  }),
  { minLength: 1, maxLength: 25 },
);

/** The arrivals of the sessions. After its deadline, an id is used for a new session. */
type Lives = Map<string, { readonly arrivedAt: number; readonly demand: Demand | undefined }>;

function demandAt({ config }: Host, { width, cost, tenant, class: named }: Ask): Demand | undefined {
  if (config === BASE) return undefined;
  const keys = config.keys === undefined ? undefined : { tenant };
  const isNamed = config.classes !== undefined && named !== "default";
  return {
    ...(width === 1 ? undefined : { width }),
    ...(config.budgets === undefined ? undefined : { cost: { tokens: cost } }),
    ...(keys === undefined ? undefined : { keys }),
    ...(isNamed ? { class: named } : undefined),
  };
}

function inputOf(host: Host, ask: Ask, book: Book, now: number, lives: Lives): Input {
  const { kind, session, bucket } = ask;
  const { key: slotToken = "slot_h.none", fence = 0 } = book.leaseOf(session) ?? {};
  const isReturning = lives.has(session);
  const { arrivedAt, demand } = lives.get(session) ?? { arrivedAt: now, demand: demandAt(host, ask) };
  if (kind === "arrive") lives.set(session, { arrivedAt, demand });
  const deadlineAt = arrivedAt + LIFE_MS;
  const joining = { session, bucket, weight: 1, arrivedAt, deadlineAt, openMs: 200, demand };
  const ending = { kind: "end", session, bucket, arrivedAt, keepUntil: deadlineAt, at: now } as const;
  switch (kind) {
    case "arrive":
      return { kind, limit: undefined, isReturning, ...joining };
    case "away":
      return { kind: "client", session, awayAt: now };
    case "end":
      return { ...ending, end: "timeout" };
    case "cancel":
      return { ...ending, end: "canceled" };
    case "release":
      return { kind, slotToken, hitAt: now, status: 200, used: { tokens: ask.cost } };
    case "renew":
      return { kind, slotToken };
    case "return":
      return { kind, fence, awayAt: now, ...joining };
    case "report":
      return { kind, status: 503 };
    case "dead":
      return { kind, instance: "i1" };
  }
}

/** How an instance decides, with the limits as they are configured or as they are changed. */
function contextsOf({ config, change }: Host) {
  const [own, changed] = [config, { ...config, ...change }].map((one) => {
    const options = resolveOptions(one);
    return { options, policy: resolveHost(options, undefined).policy };
  }) as [Limits, Limits];
  return ({ instance, polled, isChanged }: Step, now: number, at: number): DecideContext => {
    const { options, policy } = isChanged ? changed : own;
    const { collectMs, cancelMs, pollIntervalMs, idleMs, scheduler } = options;
    let tokens = 0;
    return {
      now,
      instance,
      // Limits that are loaded later replace those before them.
      limits: { policy, loadedAt: at + 1, hostname: undefined },
      isSemaphore: false,
      collectMs,
      cancelMs,
      pollIntervalMs,
      idleMs,
      mostEnds: MOST_ENDS,
      scheduler,
      newSecret: () => `${at}-${tokens++}`,
      isPolledHere: (session) => polled.includes(session),
      awayHere: (session) => (polled.includes(session) || now % 2 < 1 ? undefined : now - collectMs),
      isTokenSent: () => false,
      isUndelivered: () => true,
      seenAt: () => undefined,
    };
  };
}

interface Limits {
  readonly options: ReturnType<typeof resolveOptions>;
  readonly policy: ReturnType<typeof resolveHost>["policy"];
}

/** The order in which records are written has no meaning. */
function sorted({ head, puts, dels }: Changes): Changes {
  const byName = (a: string, b: string) => (a < b ? -1 : 1);
  return {
    head,
    puts: puts.toSorted((a, b) => byName(`${a.kind} ${a.key}`, `${b.kind} ${b.key}`)),
    dels: dels.toSorted((a, b) => byName(a.join(" "), b.join(" "))),
  };
}

/** A book of the records in another order: a store may return them in any. */
function copyOf({ head, records }: BookImage): Book {
  return Book.of("h", "1.x", structuredClone({ head, records: records.toReversed() }));
}

test.each(Object.keys(HOSTS))(
  "a host by %s: a decision equals its changes, can be undone, and gives the same result again",
  (name) => {
    const host = HOSTS[name] as Host;
    const contextOf = contextsOf(host);
    fc.assert(
      fc.property(history, (steps) => {
        const book = new Book("h", 1_000);
        const granted = new Map<string, string>();
        const lives: Lives = new Map();
        let now = 1_000;
        let fence = 0;
        steps.forEach((step, at) => {
          now += step.afterMs;
          endLives(lives, granted, now);
          const inputs = step.asks.map((one) => inputOf(host, one, book, now, lives));
          for (const one of step.asks) if (one.kind === "return") granted.delete(one.session);
          const before = structuredClone(book.image());
          const first = decide(book, inputs, contextOf(step, now, at));
          const changes = structuredClone(sorted(book.changes()));
          book.undo();
          expect(imageDifference(book.image(), before), "undo").toBeUndefined();
          if (book.limits !== undefined) expect(indexDifference(book, copyOf(before)), "undone index").toBeUndefined();
          const again = decide(book, inputs, contextOf(step, now, at));
          expect(again.outcomes).toEqual(first.outcomes);
          expect(sorted(book.changes()), "DECIDE8").toEqual(changes);
          const other = copyOf(before);
          other.follow(structuredClone(changes), `${at + 1}.x`);
          expect(imageDifference(other.image(), book.image()), "applied").toBeUndefined();
          if (book.limits !== undefined) expect(indexDifference(book, other), "applied index").toBeUndefined();
          checkBook(book, host.config === BASE ? step.polled : []);
          const ends = Array.from(book.all("ending"));
          const earlier = ends.filter(({ endedAt }) => endedAt !== book.head.now);
          expect(earlier.length === 0 || ends.length <= MOST_ENDS, "END1").toBe(true);
          for (const lease of book.all("lease")) {
            expect(granted.get(lease.session) ?? lease.key, "DECIDE2").toBe(lease.key);
            granted.set(lease.session, lease.key);
          }
          expect(book.head.fence, "DECIDE4").toBeGreaterThanOrEqual(fence);
          fence = book.head.fence;
          book.keep(`${at + 1}.x`);
          if (step.directly !== undefined && book.limits !== undefined && book.free > 0)
            takeDirectly(book, step.directly, `${at + 1}.d`);
          if (book.limits !== undefined)
            expect(indexDifference(book, copyOf(book.image())), "kept index").toBeUndefined();
        });
      }),
      { numRuns: 250 },
    );
  },
);

/** A direct SQL caller takes a slot: it charges no account, and no instance decides. */
function takeDirectly(book: Book, bucket: string, tag: string): void {
  const fence = book.head.fence + 1;
  const own = { key: `direct ${fence}`, session: `direct ${fence}`, fence, bucket, instance: "", width: 1 };
  const times = { grantedAt: book.now, endsAt: book.now + 400, keepUntil: book.now + 400 };
  const lease = { kind: "lease", ...own, ...times, isReleased: false, isProbe: false } as const;
  book.follow({ head: { ...book.head, fence, now: book.now }, puts: [lease], dels: [] }, tag);
}

function endLives(lives: Lives, granted: Map<string, string>, now: number): void {
  for (const [session, { arrivedAt }] of lives) {
    if (arrivedAt + LIFE_MS > now) continue;
    lives.delete(session);
    granted.delete(session);
  }
}

/** DECIDE6 for the polled sessions: without further limits, none waits beside a free slot. */
function checkBook(book: Book, polled: readonly string[]): void {
  if (book.limits === undefined) return;
  const { slots, slotsPerBucket } = book.policy;
  const held = [...book.all("lease"), ...book.all("offer")];
  const heldBy = (bucket: string) => sumOf(held.filter((one) => one.bucket === bucket));
  // Limits that were lowered hold for the next grants.
  const isGranted = held.some((one) => (one.kind === "lease" ? one.grantedAt : one.offeredAt) === book.now);
  const isDirect = held.some(({ instance }) => instance === "");
  if (isGranted && !isDirect) {
    expect(sumOf(held), "DECIDE1").toBeLessThanOrEqual(slots);
    for (const { bucket } of held.filter((one) => one.bucket !== ""))
      if (slotsPerBucket === 1) expect(heldBy(bucket), "DECIDE1").toBeLessThanOrEqual(slotsPerBucket);
  }
  const fences = new Set([...book.all("lease")].map((lease) => lease.fence));
  expect(fences.size, "DECIDE3").toBe(book.size("lease"));
  if (held.length >= slots || book.head.breaker.openedAt !== undefined) return;
  for (const { key, bucket, isInside, awayAt, instance } of book.all("waiter")) {
    const isFull = bucket !== "" && held.some((one) => one.bucket === bucket);
    const isOut = !isInside || awayAt !== undefined || book.get("absence", instance) !== undefined;
    const isServed = isFull || isOut || book.get("offer", key) !== undefined;
    expect(isServed || !polled.includes(key), `DECIDE6: ${key} waits beside a free slot`).toBe(true);
  }
}

const sumOf = (held: readonly { readonly width: number }[]) => held.reduce((sum, { width }) => sum + width, 0);
