/** A `SlotPool` as transfers use one: its keys are users, and what it is asked is checked. No waiting or counting here. */
import { KEYED_RULES, type KeyedOptions, type SlotPoolStats } from "../keyed-slots.ts";
import { abortSignal, numberFrom, type Rules, string, timerMs } from "../options.ts";
import type { AcquireOptions } from "../policy.ts";
import { Problems } from "../problems.ts";
import type { Work } from "../run-with-slot.ts";
import type { Slot } from "../slot.ts";
import { SlotPool, type SlotPoolLimits, type SlotPoolOptions } from "../slot-pool.ts";

/** Options of every pool of transfers. Its name is the kind of transfer, and is shown in events and errors. */
export type TransferPoolOptions = Omit<KeyedOptions, "name">;

/** A transfer takes one slot, never several: so there is no `width`. */
export type TransferOptions = Omit<AcquireOptions, "width">;

const { name: _, ...rules } = KEYED_RULES;
export const POOL_RULES: Rules<TransferPoolOptions> = { ...rules, sweepEveryMs: timerMs };

const ACQUIRE_RULES: Rules<TransferOptions> = { signal: abortSignal, timeoutMs: numberFrom(0) };

export class TransferPool {
  readonly #pool: SlotPool;
  readonly #hasUsers: boolean;

  /** With `maxPerKey`, though it may be 0 for no limit, every slot is some user's; without it, none is. */
  constructor(options: SlotPoolOptions) {
    this.#pool = new SlotPool(options);
    this.#hasUsers = options.maxPerKey !== undefined;
  }

  acquire(user: string | undefined, options?: TransferOptions): Promise<Slot> {
    const error = this.#misuse(user, options);
    return error === undefined ? this.#pool.acquire(user, options) : Promise.reject(error);
  }

  tryAcquire(user?: string): Slot | undefined {
    const error = this.#misuse(user, undefined);
    if (error !== undefined) throw error;
    return this.#pool.tryAcquire(user);
  }

  run<T>(user: string | undefined, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    const error = this.#misuse(user, options);
    return error === undefined ? this.#pool.run(user, work, options) : Promise.reject(error);
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

  /** Any string is a user, the empty one too; but an `undefined` one would slip past the limit per user. */
  #misuse(user: string | undefined, options: TransferOptions | undefined): Error | undefined {
    const problems = new Problems();
    if (this.#hasUsers) problems.expect("user", string, user);
    problems.expectAll(options, ACQUIRE_RULES);
    return problems.error;
  }
}
