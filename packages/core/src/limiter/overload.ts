/** What the result of the work means for the upstream, in `Limiter.run`. */
import { type GrantedSlot, IGNORE, type LimiterSlot, type ReleaseOptions } from "./limiter-slot.ts";

/** The work of `Limiter.run`. It is called with the slot that it holds. */
export type LimiterWork<T, B extends string = string> = (slot: LimiterSlot<B>) => T | Promise<T>;

/**
 * Decides whether a result or error means that the upstream is overloaded. `retryAfterMs` delays all requests by this
 * time, in milliseconds.
 */
export type IsOverload<T> = (
  outcome: { readonly value: T; readonly error?: never } | { readonly error: unknown; readonly value?: never },
) => boolean | { readonly retryAfterMs: number } | undefined;

/** Work that releases its slot with the outcome that `isOverload` decides; without `isOverload`, the work itself. */
export function judged<T>(
  work: LimiterWork<T>,
  isOverload: IsOverload<Awaited<T>> | undefined,
): (slot: GrantedSlot) => T | Promise<T> {
  if (isOverload === undefined) return work;
  return async (slot) => {
    let value: Awaited<T>;
    try {
      value = await work(slot);
    } catch (error) {
      release(slot, isOverload({ error }), IGNORE);
      throw error;
    }
    release(slot, isOverload({ value }), {});
    return value;
  };
}

/** An error that is not an overload says nothing about the capacity of the upstream, so it is ignored. */
function release(slot: GrantedSlot, verdict: ReturnType<IsOverload<unknown>>, otherwise: ReleaseOptions): void {
  slot.release(verdict ? { outcome: "overload", ...(typeof verdict === "object" && verdict) } : otherwise);
}
