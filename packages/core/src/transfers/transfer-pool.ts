/**
 * A `SlotPool` for transfers: its keys are users, and it checks its arguments. The pool does the waiting and counting.
 */
import { KEYED_RULES, type KeyedOptions, type SlotPoolStats } from "../keyed-slots.ts";
import { abortSignal, numberFrom, type Rules, string, timerMs } from "../options.ts";
import type { AcquireOptions } from "../policy.ts";
import { Problems } from "../problems.ts";
import type { Work } from "../run-with-slot.ts";
import type { Slot } from "../slot.ts";
import { SlotPool, type SlotPoolLimits, type SlotPoolOptions } from "../slot-pool.ts";

/** Options of every pool of transfers. The kind of transfer is the name of the pool in events and errors. */
export type TransferPoolOptions = Omit<KeyedOptions, "name">;

/** Options of a transfer. There is no `width`, because a transfer takes one slot. */
export type TransferOptions = Omit<AcquireOptions, "width">;

const { name: _, ...rules } = KEYED_RULES;
export const POOL_RULES: Rules<TransferPoolOptions> = { ...rules, sweepEveryMs: timerMs };

const ACQUIRE_RULES: Rules<TransferOptions> = { signal: abortSignal, timeoutMs: numberFrom(0) };

export class TransferPool {
  readonly #pool: SlotPool;
  readonly #hasUsers: boolean;

  /** With `maxPerKey`, even if it is 0 for no limit, every slot belongs to a user. Without it, no slot does. */
  constructor(options: SlotPoolOptions) {
    this.#pool = new SlotPool(options);
    this.#hasUsers = options.maxPerKey !== undefined;
  }

  acquire(user: string | undefined, options?: TransferOptions): Promise<Slot> {
    try {
      return this.#pool.acquire(user, this.#read(user, options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryAcquire(user?: string): Slot | undefined {
    this.#read(user, undefined);
    return this.#pool.tryAcquire(user);
  }

  run<T>(user: string | undefined, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    try {
      return this.#pool.run(user, work, this.#read(user, options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  resize(limits: SlotPoolLimits): void {
    this.#pool.resize(limits);
  }

  stats(): SlotPoolStats {
    return this.#pool.stats();
  }

  sweep(idleMs?: number): number {
    return this.#pool.sweep(idleMs);
  }

  close(): void {
    this.#pool.close("slot manager closed");
  }

  /**
   * Reads the options of a transfer, and throws if they or the user are invalid. Any string is a valid user, even the empty
   * one. `undefined` is refused, because it would bypass the limit per user.
   */
  #read(user: string | undefined, options: TransferOptions | undefined): TransferOptions | undefined {
    const problems = new Problems();
    if (this.#hasUsers) problems.expect("user", string, user);
    const given = options === undefined ? undefined : problems.readAll(options, ACQUIRE_RULES);
    problems.throwIfAny();
    return given;
  }
}
