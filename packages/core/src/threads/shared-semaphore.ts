import { type Clock, realClock } from "../clock.ts";
import { AcquireTimeoutError, ClosedError, QueueFullError } from "../errors.ts";
import { callback, check, integerFrom, kind, readOptions } from "../options.ts";
import { runWithSlot } from "../run-with-slot.ts";
import { AsyncWaits, waitAsync } from "./async-wait.ts";
import { Attachment } from "./attachment.ts";
import { claimIdentity, type Identity, mayBlock, sharedNow } from "./host.ts";
import type { SharedTime } from "./leases.ts";
import { CLOSED_AT, Memory, WANT } from "./memory.ts";
import {
  ACQUIRE_RULES,
  ATTACH_RULES,
  type AttachOptions,
  resolveSizes,
  type SharedAcquireOptions,
  type SharedSemaphoreOptions,
  THREAD_ID,
  TIMEOUT,
} from "./options.ts";
import { SharedSlot } from "./shared-slot.ts";
import { type SyncOutcome, waitSync } from "./sync-wait.ts";

/** The handle that another thread needs to attach. Send it with `postMessage` or `workerData`. */
export interface SharedSemaphoreHandle {
  /** Identifies the handle after a structured clone. */
  readonly type: "slotkeeper.shared-semaphore";
  /** The memory that all attached threads share. */
  readonly buffer: SharedArrayBuffer;
}

const HANDLE_TYPE = "slotkeeper.shared-semaphore";
const HANDLE = kind("the `handle` of a SharedSemaphore", (value) => {
  const handle = value as SharedSemaphoreHandle | null | undefined;
  return handle?.type === HANDLE_TYPE && handle.buffer instanceof SharedArrayBuffer;
});
/** `now` is the same in all threads; the timers belong to this thread. */
const threadClock: Clock & SharedTime = { ...realClock, now: sharedNow, wallNow: () => realClock.now() };

/**
 * One semaphore for all threads of a process (or all workers of a page), on one SharedArrayBuffer. It behaves like
 * `Semaphore`: first come, first served, and a released slot goes directly to the next waiter. `dispatcher.ts` explains
 * the algorithm.
 *
 * @example
 * ```ts
 * import { isMainThread, Worker, workerData } from "node:worker_threads";
 * import { SharedSemaphore, type SharedSemaphoreHandle } from "slotkeeper/threads";
 *
 * if (isMainThread) {
 *   const slots = SharedSemaphore.create(2);
 *   for (let i = 0; i < 4; i++) new Worker(new URL(import.meta.url), { workerData: slots.handle });
 * } else {
 *   const slots = SharedSemaphore.attach(workerData as SharedSemaphoreHandle);
 *   await slots.run(() => console.log("at most two threads are here"));
 * }
 * ```
 */
export class SharedSemaphore {
  /** The handle that another thread passes to `attach`. */
  readonly handle: SharedSemaphoreHandle;
  readonly #attachment: Attachment;
  readonly #clock: Clock;
  readonly #waits: AsyncWaits;
  /** The reason that this thread gave to `close`. Reasons are not shared between threads. */
  #closeReason: unknown;
  #mayBlock: boolean | undefined;

  private constructor(memory: Memory, identity: Identity, clock: Clock | undefined) {
    if (!(memory instanceof Memory)) {
      throw new TypeError(
        "Expected a SharedSemaphore to be created by `SharedSemaphore.create` or `attach`, not by `new`",
      );
    }
    this.handle = { type: HANDLE_TYPE, buffer: memory.buffer };
    this.#clock = clock ?? threadClock;
    const time = clock === undefined ? threadClock : { now: () => clock.now(), wallNow: () => clock.now() };
    this.#attachment = new Attachment(memory, identity, time);
    this.#waits = new AsyncWaits(this.#attachment, this.#clock);
  }

  /**
   * Creates a semaphore. Share it with other threads through its `handle`.
   *
   * @throws {RangeError} if `slots` or an option is out of range.
   * @throws {TypeError} if an option is unknown.
   */
  static create(slots: number, options: SharedSemaphoreOptions = {}): SharedSemaphore {
    const { clock, ...sizes } = resolveSizes(slots, options);
    const memory = Memory.allocate(sizes, (clock ?? threadClock).now());
    return new SharedSemaphore(memory, claimIdentity(memory), clock);
  }

  /** Returns the semaphore of this handle for this thread. Attach once per thread, and keep the result. */
  static attach(handle: SharedSemaphoreHandle, options: AttachOptions = {}): SharedSemaphore {
    const { threadId, clock } = readOptions(options, ATTACH_RULES);
    check("handle", HANDLE, handle);
    const memory = new Memory(handle.buffer);
    return new SharedSemaphore(memory, claimIdentity(memory, threadId), clock);
  }

  /** The id of this thread for `reap`. */
  get threadId(): number {
    return this.#attachment.identity.threadId;
  }

  /** The number of slots. */
  get capacity(): number {
    return this.#attachment.memory.load(WANT);
  }

  /** Slots held, in all threads. */
  get inUse(): number {
    return this.#attachment.inUse;
  }

  /** Slots that are free. */
  get available(): number {
    return Math.max(0, this.capacity - this.inUse);
  }

  /** Number of waiters, in all threads. */
  get waiting(): number {
    return this.#attachment.queue.count();
  }

  /** Whether `close` was called, in any thread. */
  get closed(): boolean {
    return this.#attachment.memory.load(CLOSED_AT) !== 0;
  }

  /** Returns a slot if one is free and no thread waits, otherwise `undefined`. */
  tryAcquire(): SharedSlot | undefined {
    const cell = this.#attachment.take();
    return cell < 0 ? undefined : new SharedSlot(this.#attachment, cell, this.#attachment.tag);
  }

  /** Waits for a slot without blocking the event loop. Keeps the thread alive during the wait. */
  acquire(options?: SharedAcquireOptions): Promise<SharedSlot> {
    try {
      return Promise.resolve(this.#enter(readOptions(options, ACQUIRE_RULES)));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Waits for a slot and blocks the thread; for workers. If blocking is not allowed, it returns a free slot or throws.
   */
  acquireSync(timeoutMs?: number): SharedSlot {
    if (timeoutMs !== undefined) check("timeoutMs", TIMEOUT, timeoutMs);
    return this.tryAcquire() ?? this.#block(timeoutMs);
  }

  /** Calls `work` while holding a slot. If a slot is free, the work starts before `run` returns. */
  run<T>(work: (slot: SharedSlot) => T | Promise<T>, options?: SharedAcquireOptions): Promise<Awaited<T>> {
    try {
      check("work", callback, work);
      const call = readOptions(options, ACQUIRE_RULES);
      return runWithSlot(this.#enter(call), { abortOnExpiry: false }, work, call.signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Changes the number of slots, at most to `maxHolders`. Growing serves waiters at once; shrinking evicts no holder.
   */
  resize(slots: number): void {
    check("slots", integerFrom(1, this.#attachment.memory.maxHolders), slots);
    this.#attachment.resize(slots);
  }

  /** Rejects waiters and later acquires in every thread. Holders can still release. */
  close(reason?: unknown): void {
    if (!this.closed) this.#closeReason = reason;
    this.#attachment.close();
  }

  /**
   * Takes back the slots and waits of a thread that has ended, and repairs what it left half done. Call it only for
   * threads that have ended; `watch` does that. Returns the number of slots that the thread held.
   */
  reap(threadId: number): number {
    check("threadId", THREAD_ID, threadId);
    if (threadId === this.threadId) {
      throw new TypeError(
        `Expected \`threadId\` to be of another thread that has ended, got ${threadId}, which is this thread`,
      );
    }
    return this.#attachment.reap(threadId);
  }

  #enter({ signal, timeoutMs }: SharedAcquireOptions): SharedSlot | Promise<SharedSlot> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return this.tryAcquire() ?? this.#queueUp(signal, timeoutMs);
  }

  #queueUp(signal: AbortSignal | undefined, timeoutMs: number | undefined): Promise<SharedSlot> {
    const startedAt = this.#clock.now();
    this.#refuseAtOnce(timeoutMs, startedAt);
    if (waitAsync === undefined)
      throw new TypeError(
        "Expected a host with Atomics.waitAsync, which `acquire` needs to wait; use `acquireSync` here",
      );
    const { cell, tag } = this.#enqueue(startedAt);
    return new Promise((resolve, reject) => {
      this.#waits.add({
        cell,
        tag,
        signal,
        timeoutMs,
        onOutcome: (outcome) =>
          outcome.kind === "granted" ? resolve(outcome.slot) : reject(this.#errorOf(outcome.kind, startedAt)),
        onAbort: reject,
      });
    });
  }

  #block(timeoutMs = Number.POSITIVE_INFINITY): SharedSlot {
    const startedAt = this.#clock.now();
    this.#refuseAtOnce(timeoutMs, startedAt);
    this.#mayBlock ??= mayBlock(this.#attachment.memory);
    if (!this.#mayBlock) {
      throw new TypeError(
        "Expected `acquireSync` to wait in a worker only, because the main thread must not block; use `acquire` here",
      );
    }
    const until = startedAt + timeoutMs;
    const place = this.#enqueue(startedAt);
    const outcome = waitSync(this.#attachment, place, { until, now: () => this.#clock.now() });
    if (outcome.kind === "granted") return outcome.slot;
    throw this.#errorOf(outcome.kind, startedAt);
  }

  /** Throws if the caller must not wait. */
  #refuseAtOnce(timeoutMs: number | undefined, startedAt: number): void {
    if (this.closed) throw this.#errorOf("closed", startedAt);
    if (timeoutMs === 0) throw this.#errorOf("timed-out", startedAt);
  }

  #enqueue(startedAt: number): { cell: number; tag: number } {
    const place = this.#attachment.enqueue();
    if (place.cell === 0) throw this.#errorOf("refused", startedAt);
    return place;
  }

  #errorOf(kind: Exclude<SyncOutcome["kind"], "granted">, startedAt: number): Error {
    if (kind === "closed") return new ClosedError({ semaphore: undefined }, this.#closeReason);
    const { capacity, inUse } = this;
    const { memory, queue } = this.#attachment;
    const met = { semaphore: undefined, key: undefined, capacity, inUse, waiting: queue.estimate() };
    if (kind === "refused") return new QueueFullError({ ...met, maxWaiters: memory.maxWaiters });
    return new AcquireTimeoutError({ ...met, waitedMs: this.#clock.now() - startedAt });
  }
}
