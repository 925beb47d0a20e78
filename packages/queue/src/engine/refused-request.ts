import { SlotkeeperError } from "slotkeeper";
import type { Impossible } from "../inputs.ts";

/** The limits of the host can never allow the request, so it does not wait. */
export class ImpossibleRequestError extends SlotkeeperError {
  override readonly name = "ImpossibleRequestError";
  override readonly code = "IMPOSSIBLE";
  override readonly retryable = false;
  /** The field of the request. */
  readonly field: string;

  constructor({ field, value, most, limit }: Impossible) {
    const expected = most === undefined ? (value === undefined ? "present" : "absent") : `at most ${most}`;
    super(`Expected \`${field}\` to be ${expected}, ${limit}, got ${value === undefined ? "none" : value}`);
    this.field = field;
  }
}

/** The session of this id exists with other demands. */
export class DemandMismatchError extends SlotkeeperError {
  override readonly name = "DemandMismatchError";
  override readonly code = "DEMAND_MISMATCH";
  override readonly retryable = false;

  constructor() {
    super("A session with this `requestId` exists, and asked for another `width`, `cost`, `keys` or `class`");
  }
}
