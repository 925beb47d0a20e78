import { resolveHost } from "../host-policy.ts";
import type { LiveLimits } from "../store/slot-store.ts";
import type { EngineContext } from "./context.ts";
import type { Hosts } from "./hosts.ts";
import type { Sessions } from "./sessions.ts";

/** What an operator does by hand. `hostname` where it is known: it selects the host's own limits. */
export type Operation =
  | {
      readonly kind: "limits";
      readonly host: string;
      readonly hostname?: string | undefined;
      /** All of them: what is not named is as configured again. Undefined: none. */
      readonly limits: LiveLimits | undefined;
    }
  | {
      readonly kind: "breaker";
      readonly host: string;
      readonly hostname?: string | undefined;
      readonly isOpen: boolean;
    }
  /** By its fence: tokens are secrets of their owners. */
  | { readonly kind: "revoke"; readonly slot: number };

/**
 * Brings an operator's action to the store, and so to every instance: the store decides by it from its next call on,
 * and its hint wakes those who wait. Here it is in force when the call returns; elsewhere at once for whoever asks the
 * store, and within a poll interval for what an instance believes without asking. False: there is no such slot.
 */
export async function operate(
  operation: Operation,
  engine: EngineContext,
  hosts: Hosts,
  sessions: Sessions,
): Promise<boolean> {
  if (operation.kind === "revoke") {
    const isDone = await engine.store.operate(operation);
    if (isDone) sessions.forgetLease(operation.slot);
    return isDone;
  }
  const { host, hostname, ...action } = operation;
  const known = hosts.find(host);
  const policy = known?.policy ?? resolveHost(engine.options(), hostname).policy;
  const isDone = await engine.store.operate({ ...action, host, policy });
  if (known === undefined) return isDone;
  // What was heard of the breaker is believed for an interval: not after this.
  known.hear({ phase: "closed" }, Number.NEGATIVE_INFINITY);
  engine.wake(known);
  return isDone;
}
