/**
 * The interface of a library for the benchmarks: one small adapter per peer, in `subjects/`.
 *
 * An adapter calls the documented API of the library. It adds no promise, no closure per call and no bookkeeping that
 * our own adapter does not also pay. Each (case, subject) pair runs in its own process, so the call sites of the driver
 * see only one adapter and the engine inlines it. `lacks` says in words what a library cannot do; the table prints it
 * instead of the figure.
 */

/** Returns a promise, because several libraries accept nothing else. */
export type Work = () => Promise<unknown>;

/** One limiter of the library under test. Its members are arrow functions, so that a driver can take them apart. */
interface GateOperations {
  acquire: () => Promise<unknown>;
  release: (handle: never) => unknown;
  tryAcquire: () => unknown;
  run: (work: Work) => PromiseLike<unknown>;
  /**
   * Waits like `acquire` until the signal aborts. For a library that only has `run`: runs `work` and rejects on abort.
   */
  acquireUnlessAborted: (signal: AbortSignal) => Promise<unknown>;
  runUnlessAborted: (signal: AbortSignal, work: Work) => Promise<unknown>;
  acquireWithin: (timeoutMs: number) => Promise<unknown>;
  runWithin: (timeoutMs: number, work: Work) => Promise<unknown>;
}
export type Gate = Partial<GateOperations>;

/**
 * One limiter per key: that of the library, or a `Map` of its semaphores. A cycle of a key is `const l = lookup(key);
 * release(await acquire(l), l)`. A library that only has `run` does the whole cycle in `acquire`.
 */
export interface KeyedGate {
  lookup: (key: string) => unknown;
  acquire: (limiter: never) => PromiseLike<unknown>;
  release: (handle: never, limiter: never) => unknown;
  sweep: () => unknown;
}

/** Slots that expire after a while, and can be renewed. */
export interface LeaseGate {
  acquire: () => Promise<unknown>;
  renew: (handle: never) => unknown;
  release: (handle: never) => unknown;
  /** The number of timers of the host that are set now. */
  timers: () => number;
}

/** The number of slots, and the rate. */
export interface RatedLimits {
  readonly slots: number;
  readonly limit: number;
  readonly perMs: number;
}

export interface RatedGate {
  run: (work: Work) => PromiseLike<unknown>;
  /** Why the rate is not measured, if it is not. */
  waits?: string;
}

/** The operations that a workload may need. `slots` is a limit greater than one. */
export type Operation = "acquire" | "tryAcquire" | "run" | "slots" | "signal" | "timeout" | "renew";

/** A full peer has at least one of these. */
type Safety = "owner-safe release" | "timeout" | "abort";

/** The loop of a library whose programs are not promises: the same `count` operations. */
export type NativeLoop = (count: number, work: Work) => Promise<unknown> | void;
type NativeLoops = Partial<Record<"W1" | "W1s" | "W1r" | "W2" | "W5", (slots: number) => NativeLoop>>;

export interface Subject {
  readonly id: string;
  readonly safety: readonly Safety[];
  readonly lacks: Partial<Record<Operation, string>>;
  /** Notes below the figure, if the comparison needs an explanation. */
  readonly notes?: Readonly<Record<string, string>>;
  readonly make?: (slots: number) => Gate;
  readonly makeKeyed?: () => KeyedGate;
  readonly makeLeased?: (slots: number, ttlMs: number) => LeaseGate;
  /** A limiter of a rate, and of slots if the library has them. */
  readonly makeRated?: (limits: RatedLimits) => RatedGate;
  readonly native?: NativeLoops;
}

/** Why `subject` has no figure if one of `operations` is enough, or `undefined` if it has one of them. */
export function lacksAll(subject: Subject, ...operations: readonly Operation[]): string | undefined {
  const reasons = operations.map((operation) => subject.lacks[operation]);
  return reasons.includes(undefined) ? undefined : reasons[0];
}

/** Why `subject` has no figure if all of `operations` are needed. */
export function lacksAny(subject: Subject, ...operations: readonly Operation[]): string | undefined {
  return operations.map((operation) => subject.lacks[operation]).find((reason) => reason !== undefined);
}

/** The gate of a subject that has what the case needs. An adapter that does not provide what it promises throws. */
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
