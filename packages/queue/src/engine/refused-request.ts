import type { DemandDifference } from "@slotkeeper/protocol";
import { SlotkeeperError } from "slotkeeper";
import type { Impossible } from "../inputs.ts";

/** A refusal names no more than these; budgets can have any number of names, in the overrides of keys. */
const MOST_NAMES = 20;

/** The limits of the host can never allow the request, so it does not wait. */
export class ImpossibleRequestError extends SlotkeeperError {
  override readonly name = "ImpossibleRequestError";
  override readonly code = "IMPOSSIBLE";
  override readonly retryable = false;
  /** The field of the request. */
  readonly field: string;

  constructor({ field, value, most, limit, known = [] }: Impossible) {
    const expected = most === undefined ? (value === undefined ? "present" : "absent") : `at most ${most}`;
    super(`Expected \`${field}\` to be ${expected}, ${limit}${namesIn(known)}, got ${value ?? "none"}`);
    this.field = field;
  }
}

function namesIn(known: readonly string[]): string {
  if (known.length === 0) return "";
  const shown = known.slice(0, MOST_NAMES).map((name) => `\`${name}\``);
  const others = known.length > MOST_NAMES ? [`${known.length - MOST_NAMES} more`] : [];
  return ` (it has ${[...shown, ...others].join(", ")})`;
}

/** The session of this id exists with other demands. */
export class DemandMismatchError extends SlotkeeperError {
  override readonly name = "DemandMismatchError";
  override readonly code = "DEMAND_MISMATCH";
  override readonly retryable = false;

  /** The field of the request. */
  readonly field: string;

  constructor({ field, held, given }: DemandDifference) {
    const expected = held === undefined ? "absent" : held;
    super(`Expected \`${field}\` to be ${expected}, as in the session of this \`requestId\`, got ${given ?? "none"}`);
    this.field = field;
  }
}
