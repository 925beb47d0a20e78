/** Checks of the types. This file is compiled and never run. */
import {
  type AcquireOptions,
  type AcquireTimeoutError,
  type CapacityMismatchError,
  type Clock,
  type ClosedError,
  isSlotkeeperError,
  KeyedSemaphore,
  Mutex,
  type QueueFullError,
  realClock,
  Semaphore,
  type SemaphoreEvent,
  type SemaphoreOptions,
  type SemaphoreStats,
  type Slot,
  type SlotExpiredError,
  type SlotkeeperError,
  SlotPool,
} from "slotkeeper";
import { FakeClock, LeakGuard } from "slotkeeper/testing";
import { expectTypeOf, test } from "vitest";

declare const sem: Semaphore;
declare const keyed: KeyedSemaphore<number>;
declare const pool: SlotPool;

test("run returns Awaited<T>, for work that is synchronous, asynchronous, both, or nothing", () => {
  expectTypeOf(sem.run(() => 1)).toEqualTypeOf<Promise<number>>();
  expectTypeOf(sem.run(async () => "text")).toEqualTypeOf<Promise<string>>();
  expectTypeOf(sem.run(() => (Math.sign(1) > 0 ? 1 : Promise.resolve(1)))).toEqualTypeOf<Promise<number>>();
  expectTypeOf(sem.run(() => {})).toEqualTypeOf<Promise<void>>();
  expectTypeOf(sem.run((slot) => slot)).toEqualTypeOf<Promise<Slot>>();
  expectTypeOf(sem.run(() => Promise.resolve(Promise.resolve(1)))).toEqualTypeOf<Promise<number>>();
  expectTypeOf(keyed.run(5, () => true as const)).toEqualTypeOf<Promise<true>>();
  expectTypeOf(pool.run("key", async () => null)).toEqualTypeOf<Promise<null>>();
  expectTypeOf(pool.run(undefined, () => 1)).toEqualTypeOf<Promise<number>>();
});

test("acquire returns a promise of a slot, tryAcquire a slot or undefined", () => {
  expectTypeOf(sem.acquire()).toEqualTypeOf<Promise<Slot>>();
  expectTypeOf(sem.tryAcquire()).toEqualTypeOf<Slot | undefined>();
  expectTypeOf(keyed.acquire(5)).toEqualTypeOf<Promise<Slot>>();
  expectTypeOf(pool.tryAcquire("key")).toEqualTypeOf<Slot | undefined>();
  expectTypeOf(new Mutex()).toExtend<Semaphore>();
});

test("using works with a slot", async () => {
  using slot = await sem.acquire();
  expectTypeOf(slot).toExtend<Disposable>();
  expectTypeOf(slot.expiresAt).toEqualTypeOf<number | undefined>();
  expectTypeOf<Slot["renew"]>().toEqualTypeOf<(ttlMs?: number) => boolean>();
  expectTypeOf<Slot["release"]>().toEqualTypeOf<() => boolean>();
  // @ts-expect-error The properties of a slot are read-only.
  slot.released = true;
});

test("options may be left out or be undefined, under exactOptionalPropertyTypes too", () => {
  expectTypeOf<{}>().toExtend<SemaphoreOptions>();
  expectTypeOf<{ ttlMs: undefined; name: undefined; clock: undefined }>().toExtend<SemaphoreOptions>();
  expectTypeOf<{ signal: AbortSignal | undefined; timeoutMs: number | undefined }>().toExtend<AcquireOptions>();
  // @ts-expect-error An unknown option.
  void new Semaphore(1, { timeout: 5 });
  // @ts-expect-error A number, not text.
  void new Semaphore("1");
  // @ts-expect-error A pool needs its limit.
  void new SlotPool({});
  // @ts-expect-error Not an option of acquire.
  void sem.acquire({ ttlMs: 5 });
});

test("map and wrap infer items, arguments and results", () => {
  expectTypeOf(sem.map([1, 2], (item, index) => `${item.toFixed()}${index.toFixed()}`)).toEqualTypeOf<
    Promise<string[]>
  >();
  expectTypeOf(sem.map(new Set(["a"]), async (item) => item.length)).toEqualTypeOf<Promise<number[]>>();
  const wrapped = sem.wrap(async (a: number, b?: string) => [a, b] as const);
  expectTypeOf(wrapped).toEqualTypeOf<(a: number, b?: string) => Promise<readonly [number, string | undefined]>>();
  expectTypeOf(sem.wrap(() => 1)).toEqualTypeOf<() => Promise<number>>();
});

test("keys have the type of the type argument, by default string", () => {
  // @ts-expect-error The key must be a number.
  void keyed.acquire("5");
  // @ts-expect-error A string is the default.
  void pool.acquire(5);
  void pool.acquire();
  void new KeyedSemaphore(1).acquire("key");
  // @ts-expect-error A keyed semaphore needs a key.
  void new KeyedSemaphore(1).acquire();
  // @ts-expect-error tryAcquire needs a key, too.
  void new KeyedSemaphore(1).tryAcquire();
  // @ts-expect-error A keyed semaphore has no common limit.
  new KeyedSemaphore(1).resize({ max: 1 });
  // @ts-expect-error A keyed semaphore needs a key.
  void keyed.acquire();
});

test("error codes are literals and fields are typed", () => {
  expectTypeOf<AcquireTimeoutError["code"]>().toEqualTypeOf<"ACQUIRE_TIMEOUT">();
  expectTypeOf<ClosedError["code"]>().toEqualTypeOf<"CLOSED">();
  expectTypeOf<QueueFullError["code"]>().toEqualTypeOf<"QUEUE_FULL">();
  expectTypeOf<SlotExpiredError["code"]>().toEqualTypeOf<"SLOT_EXPIRED">();
  expectTypeOf<CapacityMismatchError["code"]>().toEqualTypeOf<"CAPACITY_MISMATCH">();
  expectTypeOf<AcquireTimeoutError>().toExtend<{ readonly waitedMs: number; readonly waiting: number }>();
  expectTypeOf<SlotExpiredError["heldMs"]>().toEqualTypeOf<number>();
  expectTypeOf<CapacityMismatchError>().toExtend<{ readonly capacity: number; readonly requested: number }>();
  expectTypeOf<SlotkeeperError["retryable"]>().toEqualTypeOf<boolean>();
});

test("isSlotkeeperError narrows, and the code then distinguishes the classes", () => {
  const caught: unknown = undefined;
  if (isSlotkeeperError(caught)) {
    expectTypeOf(caught).toExtend<SlotkeeperError>();
    if (caught.code === "ACQUIRE_TIMEOUT") expectTypeOf(caught).toEqualTypeOf<AcquireTimeoutError>();
    if (caught.code === "CLOSED") expectTypeOf(caught).toEqualTypeOf<ClosedError>();
    if (caught.code === "QUEUE_FULL") expectTypeOf(caught.waiting).toEqualTypeOf<number>();
    if (caught.code === "DEADLOCK") expectTypeOf(caught.retryable).toEqualTypeOf<boolean>();
    // @ts-expect-error No error has this code.
    if (caught.code === "NO_SUCH_CODE") return;
  }
});

test("statistics and events have the fields of the contract", () => {
  expectTypeOf<keyof SemaphoreStats>().toEqualTypeOf<
    | "name"
    | "capacity"
    | "inUse"
    | "waiting"
    | "percent"
    | "acquired"
    | "released"
    | "expired"
    | "timedOut"
    | "aborted"
    | "rejected"
  >();
  expectTypeOf<SemaphoreEvent["type"]>().toEqualTypeOf<
    "acquired" | "released" | "expired" | "timed-out" | "aborted" | "closed" | "resized"
  >();
  expectTypeOf<SemaphoreEvent>().toExtend<{ at: number; waitedMs: number | undefined; capacity: number }>();
});

test("clocks, and what a leak guard tracks", () => {
  expectTypeOf<FakeClock>().toExtend<Clock>();
  expectTypeOf(realClock).toExtend<Clock>();
  const guard = new LeakGuard(new FakeClock());
  expectTypeOf(guard.track(sem)).toEqualTypeOf<Semaphore>();
  expectTypeOf(guard.track(pool)).toEqualTypeOf<SlotPool>();
  // @ts-expect-error Not a semaphore or pool.
  guard.track({});
});
