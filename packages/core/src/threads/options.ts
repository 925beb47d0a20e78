import type { Clock } from "../clock.ts";
import { MAX_CELLS, type Sizes } from "./memory.ts";

export interface SharedSemaphoreOptions {
  /** The size of the table of holders, and so the limit of `resize`. Default: 1,024, or `slots` if that is more. */
  maxHolders?: number;
  /** A held slot may be taken back after this long, by whoever waits for it. Default: never. */
  ttlMs?: number;
  /** How many may wait at one time, in all threads together. Default: 16,384. */
  maxWaiters?: number;
  /** Time for this thread's timeouts and ttl. Default: the process's monotonic clock. */
  clock?: Clock;
}

export interface AttachOptions {
  /** The id that `reap` knows this thread by. Default: Node's `threadId`; in a browser a number of its own. */
  threadId?: number;
  clock?: Clock;
}

export interface SharedAcquireOptions {
  signal?: AbortSignal;
  /** 0: now or never. Default: wait for ever. */
  timeoutMs?: number;
}

const DEFAULTS = { maxHolders: 1024, maxWaiters: 16_384 } as const satisfies SharedSemaphoreOptions;
/** Deadlines are 32-bit milliseconds, compared by their difference. */
const MAX_TTL_MS = 2 ** 30;
const MAX_WAITERS = 2 ** 20;
const MAX_THREAD_ID = 2 ** 31 - 2;

export function resolveSizes(slots: number, options: SharedSemaphoreOptions): Sizes {
  const known = ["maxHolders", "ttlMs", "maxWaiters", "clock"];
  const maxHolders = options.maxHolders ?? Math.max(DEFAULTS.maxHolders, Number.isSafeInteger(slots) ? slots : 0);
  const maxWaiters = options.maxWaiters ?? DEFAULTS.maxWaiters;
  throwAll([
    ...unknownKeys(options, known),
    integerFault("maxHolders", maxHolders, 1, MAX_CELLS),
    integerFault("slots", slots, 1, Number.isSafeInteger(maxHolders) ? Math.min(maxHolders, MAX_CELLS) : MAX_CELLS),
    integerFault("maxWaiters", maxWaiters, 0, MAX_WAITERS),
    options.ttlMs === undefined ? undefined : ttlFault("ttlMs", options.ttlMs),
  ]);
  return { slots, maxHolders, maxWaiters, ttlMs: Math.ceil(options.ttlMs ?? 0) };
}

export function checkAttachOptions(options: AttachOptions): void {
  const { threadId } = options;
  throwAll([
    ...unknownKeys(options, ["threadId", "clock"]),
    threadId === undefined ? undefined : integerFault("threadId", threadId, 0, MAX_THREAD_ID),
  ]);
}

export function checkAcquireOptions(options: SharedAcquireOptions): void {
  const { timeoutMs, signal } = options;
  if (signal !== undefined && typeof signal.addEventListener !== "function") {
    throw new TypeError(`Expected \`signal\` to be an AbortSignal, got ${typeof signal}`);
  }
  throwAll([...unknownKeys(options, ["signal", "timeoutMs"]), timeoutFault(timeoutMs)]);
}

export function checkTimeout(timeoutMs: number | undefined): void {
  throwAll([timeoutFault(timeoutMs)]);
}

export function checkSlots(slots: number, maxHolders: number): void {
  throwAll([integerFault("slots", slots, 1, maxHolders)]);
}

export function checkThreadId(threadId: number): void {
  throwAll([integerFault("threadId", threadId, 0, MAX_THREAD_ID)]);
}

export function positiveMs(name: string, value: number): number {
  throwAll([ttlFault(name, value)]);
  return value;
}

function timeoutFault(timeoutMs: number | undefined): Error | undefined {
  if (timeoutMs === undefined || timeoutMs >= 0) return undefined;
  return new RangeError(`Expected \`timeoutMs\` to be a number from 0 up, got ${String(timeoutMs)}`);
}

function ttlFault(name: string, value: number): Error | undefined {
  if (value > 0 && value <= MAX_TTL_MS) return undefined;
  return new RangeError(`Expected \`${name}\` to be a number above 0 and at most ${MAX_TTL_MS}, got ${String(value)}`);
}

function integerFault(name: string, value: number, min: number, max: number): Error | undefined {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return undefined;
  return new RangeError(`Expected \`${name}\` to be an integer from ${min} to ${max}, got ${String(value)}`);
}

function unknownKeys(options: object, known: readonly string[]): (Error | undefined)[] {
  return Object.keys(options)
    .filter((key) => !known.includes(key))
    .map((key) => new TypeError(`Expected options among ${known.join(", ")}, got ${key}`));
}

/** All problems at once; one alone keeps its class. */
function throwAll(faults: readonly (Error | undefined)[]): void {
  const found = faults.filter((fault) => fault !== undefined);
  const [first] = found;
  if (first === undefined) return;
  if (found.length === 1) throw first;
  const message = found.map((fault) => fault.message).join("; ");
  throw found.every((fault) => fault instanceof RangeError) ? new RangeError(message) : new TypeError(message);
}
