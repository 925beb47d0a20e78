import { failureCode, knownFailure, type StoreProblem } from "../failures/failure-table.ts";

/**
 * A call to the database failed. `failure-table.ts` classifies every cause and defines whether the same call may
 * succeed later. A failed call may have taken effect; every call of the store may be repeated (P8).
 */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  /** `DATABASE_UNAVAILABLE`: the same call may succeed later. `DATABASE_REFUSED`: it fails until an operator acts. */
  readonly code: "DATABASE_UNAVAILABLE" | "DATABASE_REFUSED";
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** The code of PostgreSQL, of PostgREST, or of the socket. */
  readonly state: string | undefined;
  /** What kind of failure it is. */
  readonly problem: StoreProblem;
  /** Only callers of one host are affected. */
  readonly isOfHost: boolean;

  constructor(operation: string, cause: unknown) {
    const state = failureCode(cause);
    const { isRetryable, problem, isOfHost = false } = knownFailure(state);
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`${operation}: ${reason}${state === undefined ? "" : ` (${state})`}`, { cause });
    this.state = state;
    this.retryable = isRetryable;
    this.code = isRetryable ? "DATABASE_UNAVAILABLE" : "DATABASE_REFUSED";
    this.problem = problem;
    this.isOfHost = isOfHost;
  }
}

/** Our own error code: P2 or P3 of the store would break. */
export function isBrokenPromise(error: unknown): boolean {
  return error instanceof DatabaseError && error.state === "SK002";
}

/** The prepared statement belongs to a different session: a pooler does not track prepared statements. Nothing was executed. */
export function isLostStatement(error: unknown): boolean {
  const state = failureCode(error);
  return state === "26000" || state === "42P05";
}

/** The transaction was rolled back, and may succeed immediately if it is repeated. */
export function isConflict(error: unknown): boolean {
  const state = failureCode(error);
  return state === "40001" || state === "40P01";
}

/** Another program keeps the row of the host locked for too long. */
export function isLocked(error: unknown): boolean {
  return error instanceof DatabaseError && error.state === "55P03";
}

/** No answer came in time: the connection may be dead, or the server does not respond. */
export function isUnanswered(error: unknown): boolean {
  return failureCode(error) === "ETIMEDOUT";
}
