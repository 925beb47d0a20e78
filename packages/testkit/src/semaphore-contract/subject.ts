/**
 * The common interface of all semaphores of this project, in one process or over the service. If one returns a value
 * and the other a promise, the suite awaits.
 */
type Awaitable<T> = T | Promise<T>;

export interface SlotLike {
  readonly id: string;
  readonly signal: AbortSignal;
  readonly released: boolean;
  release(): Awaitable<boolean>;
  [Symbol.dispose](): void;
}

export interface SemaphoreLike {
  readonly name?: string | undefined;
  readonly capacity: number;
  acquire(options?: { signal?: AbortSignal; timeoutMs?: number; width?: number }): Promise<SlotLike>;
  tryAcquire(): Awaitable<SlotLike | undefined>;
  run<T>(
    work: (slot: SlotLike) => Awaitable<T>,
    options?: { signal?: AbortSignal; timeoutMs?: number },
  ): Promise<Awaited<T>>;
  release(id: string): Awaitable<boolean>;
}

/** Members that only a semaphore in one process has. */
export interface LocalSemaphoreLike extends SemaphoreLike {
  readonly inUse: number;
  readonly waiting: number;
  resize(slots: number): void;
  close(): void;
}

/** What an implementation provides for the suite. */
export interface SemaphoreSubject {
  /** Semaphores with the same name share their slots. */
  make(slots: number, name: string): SemaphoreLike;
  /** Resolves when this number of waiters is in the queue of this name. */
  queued(name: string, waiters: number): Promise<void>;
  close(): Promise<void>;
}

/** The parts that an implementation does not support, each with the reason. */
export interface Skips {
  readonly resize?: string;
  readonly close?: string;
  readonly counters?: string;
}

export interface ContractOptions {
  readonly open: () => Promise<SemaphoreSubject>;
  readonly skip?: Skips;
}
