/** A semaphore for each key, all with the same number of slots. */
import { KEYED, KEYED_RULES, type KeyedOptions, KeyedSlots } from "./keyed-slots.ts";
import { check, readOptions } from "./options.ts";
import { resolvePolicy, SLOTS } from "./policy.ts";

/**
 * A semaphore for each key, created at first use and removed after a long idle time. Keys are compared as in a `Map`.
 * Any value can be a key: the empty string, an object, `undefined`.
 *
 * @throws {RangeError} if `slotsPerKey` is not an integer from 1 up or `Infinity`.
 * @throws {TypeError} if an option is unknown or of another type.
 * @example
 * ```ts
 * import { KeyedSemaphore } from "slotkeeper";
 *
 * const perUser = new KeyedSemaphore(1, { name: "accounts" });
 * await perUser.run("ann", () => console.log("only one at a time for ann"));
 * ```
 */
export class KeyedSemaphore<K = string> extends KeyedSlots<K, "maxPerKey"> {
  constructor(slotsPerKey: number, options?: KeyedOptions) {
    check("slotsPerKey", SLOTS, slotsPerKey);
    super(resolvePolicy(KEYED, readOptions(options, KEYED_RULES)), Infinity, slotsPerKey, { maxPerKey: SLOTS });
  }
}
