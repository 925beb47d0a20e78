import type { LiveLimits } from "../book/records.ts";
import type { Outcome } from "../inputs.ts";
import type { Hosts } from "./hosts.ts";
import type { Sessions } from "./sessions.ts";

/** What an operator does by hand. `hostname` where it is known: it selects the host's own limits. */
export type Operation = { readonly host: string; readonly hostname?: string | undefined } & (
  | {
      readonly kind: "limits";
      /** All of them: what is not named is as configured again. Undefined: none. */
      readonly limits: LiveLimits | undefined;
    }
  | { readonly kind: "breaker"; readonly isOpen: boolean }
  /** By its fence: tokens are secrets of their owners. */
  | { readonly kind: "revoke"; readonly fence: number }
);

/** An operator's action is in force when the promise settles, at every instance that decides after it. False: no such slot. */
export async function operate(operation: Operation, hosts: Hosts, sessions: Sessions): Promise<boolean> {
  const host = hosts.open(operation);
  const outcome = await new Promise<Outcome>((resolve) => {
    host.send(operation, resolve);
  });
  if (outcome.kind === "missing") return false;
  if (operation.kind === "revoke") sessions.transitions.forgetLease(host, operation.fence);
  return true;
}
