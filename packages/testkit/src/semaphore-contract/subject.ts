/**
 * What every semaphore of this project has in common, in one process or over the service. Where one answers at once and
 * the other with a promise, the suite awaits.
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
  acquire(options?: { signal?: AbortSignal; timeoutMs?: number }): Promise<SlotLike>;
  tryAcquire(): Awaitable<SlotLike | undefined>;
  run<T>(
    work: (slot: SlotLike) => Awaitable<T>,
    options?: { signal?: AbortSignal; timeoutMs?: number },
  ): Promise<Awaited<T>>;
  release(id: string): Awaitable<boolean>;
}

/** Only of a semaphore in one process. */
export interface LocalSemaphoreLike extends SemaphoreLike {
  readonly inUse: number;
  readonly waiting: number;
  acquire(options?: { signal?: AbortSignal; timeoutMs?: number; width?: number }): Promise<SlotLike>;
  resize(slots: number): void;
  close(): void;
}

/** What an implementation brings to be tested. */
export interface SemaphoreSubject {
  /** The same name gives the same slots. */
  make(slots: number, name: string): SemaphoreLike;
  /** Resolves when this number waits for the semaphore of this name, and no longer are on their way. */
  queued(name: string, waiters: number): Promise<void>;
  close(): Promise<void>;
}

/** What an implementation does not do, each with the reason. */
export interface Skips {
  readonly width?: string;
  readonly resize?: string;
  readonly close?: string;
  readonly counters?: string;
}

export interface ContractOptions {
  readonly open: () => Promise<SemaphoreSubject>;
  readonly skip?: Skips;
}
