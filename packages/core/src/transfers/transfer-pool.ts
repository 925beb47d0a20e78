/** A `SlotPool` for transfers: its keys are users, and it checks its arguments. */
import { KEYED_RULES, type KeyedOptions } from "../keyed-slots.ts";
import { abortSignal, numberFrom, type Rules, string, timerMs } from "../options.ts";
import type { AcquireOptions } from "../policy.ts";
import { Problems } from "../problems.ts";
import type { Work } from "../run-with-slot.ts";
import type { Slot } from "../slot.ts";
import { SlotPool, type SlotPoolOptions } from "../slot-pool.ts";

/** Options of every pool of transfers. The kind of transfer is the name of the pool in events and errors. */
export type TransferPoolOptions = Omit<KeyedOptions, "name">;

/** Options of a transfer. There is no `width`, because a transfer takes one slot. */
export type TransferOptions = Omit<AcquireOptions, "width">;

const { name: _, ...rules } = KEYED_RULES;
export const POOL_RULES: Rules<TransferPoolOptions> = { ...rules, sweepEveryMs: timerMs };

const ACQUIRE_RULES: Rules<TransferOptions> = { signal: abortSignal, timeoutMs: numberFrom(0) };

export class TransferPool extends SlotPool<string | undefined> {
  readonly #hasUsers: boolean;

  /** With `maxPerKey`, even if it is 0 for no limit, every slot belongs to a user. Without it, no slot does. */
  constructor(options: SlotPoolOptions) {
    super(options);
    this.#hasUsers = options.maxPerKey !== undefined;
  }

  override acquire(user: string | void, options?: TransferOptions): Promise<Slot> {
    try {
      return super.acquire(user, this.#read(user, options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  override tryAcquire(user: string | void): Slot | undefined {
    this.#read(user, undefined);
    return super.tryAcquire(user);
  }

  override run<T>(user: string | void, work: Work<T>, options?: TransferOptions): Promise<Awaited<T>> {
    try {
      return super.run(user, work, this.#read(user, options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  override close(): void {
    super.close("slot manager closed");
  }

  /**
   * Reads the options of a transfer, and throws if they or the user are invalid. Any string is a valid user, even the empty
   * one. `undefined` is refused, because it would bypass the limit per user.
   */
  #read(user: string | void, options: TransferOptions | undefined): TransferOptions | undefined {
    const problems = new Problems();
    if (this.#hasUsers) problems.expect("user", string, user);
    const given = options === undefined ? undefined : problems.readAll(options, ACQUIRE_RULES);
    problems.throwIfAny();
    return given;
  }
}
