import type { LiveLimits } from "../book/records.ts";
import type { Outcome } from "../inputs.ts";
import type { Hosts } from "./hosts.ts";

/** An action of an operator. `hostname`, if known, selects the host's own limits. */
export type Operation = { readonly host: string; readonly hostname?: string | undefined } & (
  | {
      readonly kind: "limits";
      /**
       * Replaces all limits of the operator: fields that are missing return to the configuration. Undefined: removes
       * all of them.
       */
      readonly limits: LiveLimits | undefined;
    }
  | { readonly kind: "breaker"; readonly isOpen: boolean }
  /** Nothing new is granted until the host goes on. Holders keep their slots. */
  | { readonly kind: "pause"; readonly isPaused: boolean }
  /** The slot is named by its fence: only the owner of a slot knows its token. */
  | { readonly kind: "revoke"; readonly fence: number }
);

/** The action is in force when the promise settles, for all later decisions of every instance. False: there is no such slot. */
export async function operate(operation: Operation, hosts: Hosts): Promise<boolean> {
  const host = hosts.open(operation);
  const outcome = await new Promise<Outcome>((resolve) => {
    host.send(operation, resolve);
  });
  return outcome.kind !== "missing";
}
