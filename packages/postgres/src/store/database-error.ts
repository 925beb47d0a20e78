import { failureCode, knownFailure, type StoreProblem } from "../failures/failure-table.ts";

/**
 * A call to the database failed. `failure-table.ts` says of every cause what it is and whether the same call may succeed
 * later. A call that failed may have happened; every call of the store may be repeated (P8 of the port).
 */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  /** `DATABASE_UNAVAILABLE`: the same call may succeed later. `DATABASE_REFUSED`: it fails until an operator acts. */
  readonly code: "DATABASE_UNAVAILABLE" | "DATABASE_REFUSED";
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** PostgreSQL's code, PostgREST's, or that of the socket. */
  readonly state: string | undefined;
  /** What kind of failure it is. */
  readonly problem: StoreProblem;
  /** Only callers of one host meet it. */
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

/** Ours: P2 or P3 of the port would break. */
export function isBrokenPromise(error: unknown): boolean {
  return error instanceof DatabaseError && error.state === "SK002";
}

/** The prepared statement is another session's: a pooler is in between that cannot follow them. Nothing was run. */
export function isLostStatement(error: unknown): boolean {
  const state = failureCode(error);
  return state === "26000" || state === "42P05";
}

/** The transaction was undone, and would succeed if it came again at once. */
export function isConflict(error: unknown): boolean {
  const state = failureCode(error);
  return state === "40001" || state === "40P01";
}

/** Another program has kept the host's row locked for too long. */
export function isLocked(error: unknown): boolean {
  return error instanceof DatabaseError && error.state === "55P03";
}

/** Nothing came back in time: the connection may be dead, or the server stands still. */
export function isUnanswered(error: unknown): boolean {
  return failureCode(error) === "ETIMEDOUT";
}
