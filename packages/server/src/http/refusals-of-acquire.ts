import { PROBLEMS, type ProblemCode } from "@slotkeeper/protocol";
import { isSlotkeeperError } from "slotkeeper";

/** A refused acquire as a problem document. Its code is the code of the error. */
export interface AcquireRefusal {
  readonly code: ProblemCode;
  readonly message: string;
  /** The field of the request that is refused. */
  readonly field?: string;
}

/** Undefined: the error is no refusal. */
export function refusalOf(error: unknown): AcquireRefusal | undefined {
  return isSlotkeeperError(error) && Object.hasOwn(PROBLEMS, error.code) ? (error as AcquireRefusal) : undefined;
}
