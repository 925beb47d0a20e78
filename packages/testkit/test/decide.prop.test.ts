import { type BookImage, type Changes, resolveHost, resolveOptions } from "@slotkeeper/queue";
import { Book, type DecideContext, decide, type Input } from "@slotkeeper/queue/internals";
import { imageDifference, indexDifference } from "@slotkeeper/testkit/simulator";
import * as fc from "fast-check";
import { expect, test } from "vitest";

/**
 * The decision on random histories: BOOK2, BOOK4, DECIDE1 to DECIDE4, DECIDE6 and DECIDE8 of `@slotkeeper/queue`. The host
 * keeps so few ends that END1 to END3 matter for DECIDE2.
 */

const OPTIONS = resolveOptions({
  maxSlotPerHost: 2,
  maxSlotPerIp: 1,
  maxWaitersPerHost: 4,
  minSlotHoldMs: 30,
  zombieTimeoutSeconds: 0.4,
  collectMs: 100,
  defaultGrantedCleanupDelay: 0.1,
  breaker: { consecutiveErrors: 2, openSeconds: 0.2 },
});
const { policy } = resolveHost(OPTIONS, undefined);
const SESSIONS = ["s0", "s1", "s2", "s3", "s4", "s5"];
const INSTANCES = ["i0", "i1"];
const MOST_ENDS = 1;
const LIFE_MS = 2_000;

/** One instance decides on the inputs of a few milliseconds. */
interface Step {
  readonly afterMs: number;
  readonly instance: string;
  readonly polled: readonly string[];
  readonly asks: readonly Ask[];
}

interface Ask {
  readonly kind: "arrive" | "away" | "end" | "cancel" | "release" | "renew" | "return" | "report" | "dead";
  readonly session: string;
  readonly bucket: string;
}

const ask: fc.Arbitrary<Ask> = fc.record({
  kind: fc.constantFrom<Ask["kind"][]>(
    "arrive",
    "arrive",
    "away",
    "end",
    "cancel",
    "release",
    "renew",
    "return",
    "report",
    "dead",
  ),
  session: fc.constantFrom(...SESSIONS),
  bucket: fc.constantFrom("", "a", "b"),
});

const history: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    afterMs: fc.constantFrom(0, 1, 20, 60, 300),
    instance: fc.constantFrom(...INSTANCES),
    polled: fc.subarray(SESSIONS),
    asks: fc.array(ask, { maxLength: 4 }),
  }),
  { minLength: 1, maxLength: 25 },
);

/** The arrivals of the sessions. After its deadline, an id is used for a new session. */
type Lives = Map<string, number>;

function inputOf({ kind, session, bucket }: Ask, book: Book, now: number, lives: Lives): Input {
  const { key: slotToken = "slot_h.none", fence = 0 } = book.leaseOf(session) ?? {};
  const isReturning = lives.has(session);
  const arrivedAt = lives.get(session) ?? now;
  if (kind === "arrive") lives.set(session, arrivedAt);
  const deadlineAt = arrivedAt + LIFE_MS;
  const joining = { session, bucket, weight: 1, arrivedAt, deadlineAt, openMs: 200 };
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
      return { kind, slotToken, hitAt: now, status: 200 };
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

function contextOf({ instance, polled }: Step, now: number, at: number): DecideContext {
  let tokens = 0;
  const { collectMs, cancelMs, pollIntervalMs, idleMs, scheduler } = OPTIONS;
  return {
    now,
    instance,
    limits: { policy, loadedAt: 1, hostname: undefined },
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

function copyOf(image: BookImage): Book {
  return Book.of("h", "1.x", structuredClone(image));
}

test("a decision equals its changes, can be undone, and gives the same result again", () => {
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
        const inputs = step.asks.map((one) => inputOf(one, book, now, lives));
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
        if (book.limits !== undefined) expect(indexDifference(other, book), "applied index").toBeUndefined();
        checkBook(book, step);
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
      });
    }),
    { numRuns: 500 },
  );
});

function endLives(lives: Lives, granted: Map<string, string>, now: number): void {
  for (const [session, arrivedAt] of lives) {
    if (arrivedAt + LIFE_MS > now) continue;
    lives.delete(session);
    granted.delete(session);
  }
}

function checkBook(book: Book, { polled }: Step): void {
  if (book.limits === undefined) return;
  const held = [...book.all("lease"), ...book.all("offer")];
  expect(held.length, "DECIDE1").toBeLessThanOrEqual(policy.slots);
  for (const bucket of ["a", "b"]) {
    expect(held.filter((one) => one.bucket === bucket).length, "DECIDE1").toBeLessThanOrEqual(policy.slotsPerBucket);
  }
  const fences = new Set([...book.all("lease")].map((lease) => lease.fence));
  expect(fences.size, "DECIDE3").toBe(book.size("lease"));
  if (held.length >= policy.slots || book.head.breaker.openedAt !== undefined) return;
  for (const { key, bucket, isInside, awayAt, instance } of book.all("waiter")) {
    const isFull = bucket !== "" && held.some((one) => one.bucket === bucket);
    const isOut = !isInside || awayAt !== undefined || book.get("absence", instance) !== undefined;
    const isServed = isFull || isOut || book.get("offer", key) !== undefined;
    expect(isServed || !polled.includes(key), `DECIDE6: ${key} waits beside a free slot`).toBe(true);
  }
}
