/**
 * One kind of slot with a global limit and, if wanted, a limit per key.
 *
 * POOL1  Per key first, then global: a waiter for its key holds no global slot, so a key's backlog, however long,
 *     takes nothing from the others.
 * POOL2  If the second stage fails in any way, the first is undone before the caller learns of it.
 * POOL3  A slot counts at its key's gate and at the global one, the root of that: both go back together, the key's
 *     first, whether released or expired, and before either is handed on. Without a limit per key that stage is left out.
 */
import { KEYED, KEYED_RULES, type KeyedOptions, KeyedSlots } from "./keyed-slots.ts";
import { anyObject, check, countFrom } from "./options.ts";
import { resolvePolicy } from "./policy.ts";

/** Options of `SlotPool`. */
export interface SlotPoolOptions extends KeyedOptions {
  /** Slots of all keys together; 0 for no limit. */
  max: number;
  /** Slots of each key; 0 for no limit. @defaultValue 0 */
  maxPerKey?: number | undefined;
}

/** New limits for `resize`; a limit that is not named stays. */
export type SlotPoolLimits = Pick<SlotPoolOptions, "maxPerKey"> & Partial<Pick<SlotPoolOptions, "max">>;

const LIMIT_RULES = { max: countFrom(0), maxPerKey: countFrom(0) };

/**
 * Slots with a common limit and a limit for each key. A caller waits first for its key and then for the common limit, so
 * the waiters of one key never hold slots that others could use. Without a key, or if keys have no limit, only the common
 * limit counts. `timeoutMs` and `signal` cover both waits.
 *
 * @throws {TypeError} if `options` are missing, have unknown keys or values of another type.
 * @throws {RangeError} if a limit is negative or not an integer.
 * @example
 * ```ts
 * import { SlotPool } from "slotkeeper";
 *
 * const uploads = new SlotPool({ max: 10, maxPerKey: 2, name: "uploads" });
 * await uploads.run("ann", () => console.log("ann has at most 2 of the 10 slots"));
 * ```
 */
export class SlotPool<K = string> extends KeyedSlots<K | void, keyof SlotPoolLimits> {
  constructor(options: SlotPoolOptions) {
    check("options", anyObject, options);
    const policy = resolvePolicy({ ...KEYED, max: 0, maxPerKey: 0 }, { ...KEYED_RULES, ...LIMIT_RULES }, options);
    check("max", LIMIT_RULES.max, options.max);
    super(policy, policy.max, policy.maxPerKey, LIMIT_RULES);
  }
}
