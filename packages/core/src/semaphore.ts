/// <reference lib="esnext.disposable" preserve="true" />
/** The primitive that users meet: a `Gate`, found by name or its own, and the options of this instance. */
import { Gate } from "./gate.ts";
import { GateContext } from "./gate-context.ts";
import { type AcquireOptions, check, PLAIN, type Policy, type PolicyOptions, resolvePolicy } from "./policy.ts";
import { defaultRegistry, type SemaphoreRegistry } from "./registry.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import type { Slot } from "./slot.ts";
import { type SemaphoreStats, statsOf } from "./stats.ts";

export interface SemaphoreOptions extends PolicyOptions {
  /** Same name and same registry: the same slots, in every instance. */
  name?: string | undefined;
  /** Where the name is looked up. Default: `defaultRegistry`. */
  registry?: SemaphoreRegistry | undefined;
}

/**
 * A counting semaphore. Waiters are served in the order of their arrival, by direct hand-off: a slot that is released
 * belongs to the next waiter before `release` returns, so nobody can slip in between, and a wide waiter at the head is
 * never overtaken by narrow ones.
 */
export class Semaphore {
  readonly #policy: Policy & { registry: SemaphoreRegistry };
  #gate: Gate;

  constructor(slots: number, options: SemaphoreOptions = {}) {
    check("slots", slots, 1);
    const policy = resolvePolicy({ ...PLAIN, registry: defaultRegistry }, options);
    const { name, clock, registry } = policy;
    this.#policy = policy;
    this.#gate =
      name === undefined ? new Gate(slots, new GateContext(clock)) : registry.open(name, slots, options.clock);
  }

  get name(): string | undefined {
    return this.#policy.name;
  }

  get capacity(): number {
    return this.#current.capacity;
  }

  /** Slots held: the sum of their widths. */
  get inUse(): number {
    return this.#current.inUse;
  }

  get available(): number {
    const { capacity, inUse } = this.#current;
    return Math.max(0, capacity - inUse);
  }

  get waiting(): number {
    return this.#current.waiting;
  }

  /** Whoever asks now has to wait. */
  get locked(): boolean {
    return !this.#current.fits(1);
  }

  get closed(): boolean {
    return Boolean(this.#current.context.closed);
  }

  /** Waits for a slot. */
  acquire(options?: AcquireOptions): Promise<Slot> {
    return Promise.resolve(this.#current.enter(this.#policy, options));
  }

  /** A slot now, or `undefined`: also while others wait, and when closed. */
  tryAcquire(options?: { width?: number | undefined }): Slot | undefined {
    return this.#current.tryEnter(this.#policy, options?.width);
  }

  /** Does the work while holding a slot. If one is free, the work starts before this returns. */
  run<T>(work: Work<T>, options?: AcquireOptions): Promise<Awaited<T>> {
    return runWithSlot(this.#current.enter(this.#policy, options), this.#policy, work, options);
  }

  /** Runs `fn` for every item, at most `capacity` at a time; results in the order of the items, first failure fails. */
  map<Item, T>(items: Iterable<Item>, fn: (item: Item, index: number) => T | Promise<T>): Promise<Awaited<T>[]> {
    return Promise.all(Array.from(items, (item, index) => this.run(() => fn(item, index))));
  }

  /** The same function, but each call holds a slot while it runs. */
  wrap<Args extends unknown[], T>(fn: (...args: Args) => T | Promise<T>): (...args: Args) => Promise<Awaited<T>> {
    return (...args) => this.run(() => fn(...args));
  }

  /** Releases by `slot.id`. `true` only if that id held a slot. */
  release(id: string): boolean {
    return this.#current.context.byId.get(id)?.release() ?? false;
  }

  /** Growing serves waiters at once. Shrinking evicts nobody, but refuses waiters that have become too wide. */
  resize(slots: number): void {
    check("slots", slots, 1);
    this.#current.resize(slots, this.#policy);
  }

  /** Waiters and later acquires reject with `ClosedError`; holders may still release. A string is its message. */
  close(reason?: unknown): void {
    this.#current.close(this.#policy, reason);
  }

  /** Resolves when nothing is held. */
  idle(): Promise<void> {
    const { inUse, context } = this.#current;
    return new Promise((resolve) => (inUse > 0 ? context.onIdle.push(resolve) : resolve()));
  }

  stats(): SemaphoreStats {
    return statsOf(this.#current);
  }

  /**
   * A named gate is dropped when idle for long; then whatever gate has the name now is ours. A gate that was closed
   * while it was ours stays ours, so that closed means closed; one that was closed before is only asked.
   */
  get #current(): Gate {
    const { home, context } = this.#gate;
    if (!home || context.closed) return this.#gate;
    const gate = this.#policy.registry.current(this.#gate);
    if (!gate.context.closed) this.#gate = gate;
    return gate;
  }
}

/** One at a time. */
export class Mutex extends Semaphore {
  constructor(options?: SemaphoreOptions) {
    super(1, options);
  }
}
