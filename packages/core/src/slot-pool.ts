/**
 * Slots with a common limit and an optional limit per key.
 *
 * POOL1  A caller waits for the limit of its key first, then for the common limit. While it waits for its key, it does not
 *     count towards the common limit. So a long queue of one key takes nothing from the other keys.
 * POOL2  If the second stage fails in any way, the first is undone before the caller gets the error.
 * POOL3  A slot counts at the gate of its key and at the root, the gate of the common limit. A release or expiry frees it
 *     at both, at the key's gate first, before either gate hands it over. Without a limit per key, the first stage is
 *     skipped.
 */
import { KEYED, KEYED_RULES, type KeyedOptions, KeyedSlots } from "./keyed-slots.ts";
import { check, countFrom, type Rules, readOptions } from "./options.ts";
import { resolvePolicy } from "./policy.ts";

/** Options of `SlotPool`. */
export interface SlotPoolOptions extends KeyedOptions {
  /** Slots of all keys together; 0 means no limit. */
  max: number;
  /** Slots of each key; 0 means no limit. @defaultValue 0 */
  maxPerKey?: number | undefined;
}

/** New limits for `resize`. A limit that is not given does not change. */
export type SlotPoolLimits = Pick<SlotPoolOptions, "maxPerKey"> & Partial<Pick<SlotPoolOptions, "max">>;

const LIMIT_RULES = { max: countFrom(0), maxPerKey: countFrom(0) };
const RULES: Rules<SlotPoolOptions> = { ...LIMIT_RULES, ...KEYED_RULES };

/**
 * Slots with a common limit and a limit for each key. A caller waits first for its key and then for the common limit, so
 * the waiters of one key never hold slots that others could use. Without `maxPerKey` only the common limit counts, and calls
 * need no key. With it, a call without a key is a `TypeError`. `timeoutMs` and `signal` cover both waits.
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
    const given = readOptions(options, RULES);
    check("max", LIMIT_RULES.max, given.max);
    super(resolvePolicy(KEYED, given), given.max, given.maxPerKey, LIMIT_RULES);
  }
}
