/**
 * What a benchmark needs to know of a library: one small adapter per peer, in `subjects/`.
 *
 * An adapter forwards to the library's documented API and adds no promise, no closure per call and no bookkeeping that
 * our own adapter does not pay too. Each (case, subject) pair runs in a process of its own, so the driver's call sites
 * see one adapter only and the engine inlines it. What a library cannot do is said in `lacks`, in words: the table
 * prints them where the figure would stand.
 */

/** Returns a promise, since several libraries accept nothing else. */
export type Work = () => Promise<unknown>;

/** One limiter of the library under test. Arrow functions, so that a driver may take them apart. */
interface GateOperations {
  acquire: () => Promise<unknown>;
  release: (handle: never) => unknown;
  tryAcquire: () => unknown;
  run: (work: Work) => PromiseLike<unknown>;
  /** Waits like `acquire` until the signal aborts. For a library that only scopes: runs `work`, rejects on abort. */
  acquireUnlessAborted: (signal: AbortSignal) => Promise<unknown>;
  runUnlessAborted: (signal: AbortSignal, work: Work) => Promise<unknown>;
  acquireWithin: (timeoutMs: number) => Promise<unknown>;
  runWithin: (timeoutMs: number, work: Work) => Promise<unknown>;
}
export type Gate = Partial<GateOperations>;

/**
 * One limiter per key: the library's own, or a `Map` of its semaphores. A cycle of a key is
 * `const l = lookup(key); release(await acquire(l), l)`; a library that only scopes runs the whole cycle in `acquire`.
 */
export interface KeyedGate {
  lookup: (key: string) => unknown;
  acquire: (limiter: never) => PromiseLike<unknown>;
  release: (handle: never, limiter: never) => unknown;
  sweep: () => unknown;
}

/** Slots that are taken back after a while, and may be renewed. */
export interface LeaseGate {
  acquire: () => Promise<unknown>;
  renew: (handle: never) => unknown;
  release: (handle: never) => unknown;
  /** Timers of the host that are armed at this moment. */
  timers: () => number;
}

/** How many at a time, and how many per time. */
export interface RatedLimits {
  readonly slots: number;
  readonly limit: number;
  readonly perMs: number;
}

export interface RatedGate {
  run: (work: Work) => PromiseLike<unknown>;
  /** Why the rate is not measured, if so. */
  waits?: string;
}

/** What a workload may ask for. `slots` is a limit greater than one. */
export type Operation = "acquire" | "tryAcquire" | "run" | "slots" | "signal" | "timeout" | "renew";

/** What makes a peer a full one: any of the three. */
type Safety = "owner-safe release" | "timeout" | "abort";

/** A library whose programs are not promises runs the loop its own way: the same `count` operations. */
export type NativeLoop = (count: number, work: Work) => Promise<unknown> | void;
type NativeLoops = Partial<Record<"W1" | "W1s" | "W1r" | "W2" | "W5", (slots: number) => NativeLoop>>;

export interface Subject {
  readonly id: string;
  readonly safety: readonly Safety[];
  readonly lacks: Partial<Record<Operation, string>>;
  /** Said under the figure where the comparison needs a word. */
  readonly notes?: Readonly<Record<string, string>>;
  readonly make?: (slots: number) => Gate;
  readonly makeKeyed?: () => KeyedGate;
  readonly makeLeased?: (slots: number, ttlMs: number) => LeaseGate;
  /** A limiter of a rate, and of slots where the library has them. */
  readonly makeRated?: (limits: RatedLimits) => RatedGate;
  readonly native?: NativeLoops;
}

/** Why `subject` has no figure where one of `operations` is enough, or undefined if it has one of them. */
export function lacksAll(subject: Subject, ...operations: readonly Operation[]): string | undefined {
  const reasons = operations.map((operation) => subject.lacks[operation]);
  return reasons.includes(undefined) ? undefined : reasons[0];
}

/** Why `subject` has no figure where all of `operations` are needed. */
export function lacksAny(subject: Subject, ...operations: readonly Operation[]): string | undefined {
  return operations.map((operation) => subject.lacks[operation]).find((reason) => reason !== undefined);
}

/** The gate of a subject that does not lack what the case needs: an adapter that promises and does not deliver throws. */
export function gateWith<K extends keyof GateOperations>(
  subject: Subject,
  slots: number,
  ...operations: readonly K[]
): Pick<GateOperations, K> {
  const gate = subject.make?.(slots) ?? {};
  const missing = operations.filter((operation) => gate[operation] === undefined);
  if (missing.length > 0)
    throw new TypeError(`Subject ${subject.id} has no ${missing.join(", ")} and does not say why.`);
  return gate as Pick<GateOperations, K>;
}
