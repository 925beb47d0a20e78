/**
 * What went wrong with the database, from one table of causes.
 *
 * | retryable | what                                                                          |
 * |-----------|-------------------------------------------------------------------------------|
 * | yes       | nothing is wrong with the call: the same call later may succeed                |
 * | no        | the schema, a right or a bug: every repetition fails until somebody changes it |
 *
 * A call that failed may have happened; every call of the store may be repeated (P8 of the port).
 */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  readonly code: "DATABASE_UNAVAILABLE" | "DATABASE_REFUSED";
  readonly retryable: boolean;
  /** PostgreSQL's code, or that of the socket. */
  readonly state: string | undefined;

  constructor(operation: string, cause: unknown) {
    const state = stateOf(cause);
    const retryable = isRetryable(state, cause);
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`${operation}: ${reason}${state === undefined ? "" : ` (${state})`}`, { cause });
    this.state = state;
    this.retryable = retryable;
    this.code = retryable ? "DATABASE_UNAVAILABLE" : "DATABASE_REFUSED";
  }
}

/** Whole classes of SQLSTATEs, by their first two characters, and single ones. */
const RETRYABLE: { readonly [state: string]: string } = {
  "08": "connection exception",
  "53": "insufficient resources: connections, memory, disk",
  "40001": "serialization failure",
  "40P01": "deadlock detected",
  "55P03": "lock not available: another transaction holds the host too long",
  "57014": "query canceled: statement timeout",
  "57P01": "admin shutdown",
  "57P02": "crash shutdown",
  "57P03": "cannot connect now: starting up or shutting down",
  "57P05": "idle session timeout",
  "25006": "read-only transaction: a standby, until it is promoted",
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was cut",
  EPIPE: "the connection was cut",
  ETIMEDOUT: "no answer",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  ENOTFOUND: "the name is not known, now",
  EAI_AGAIN: "the name server does not answer",
};

/** The driver's own errors have no code. */
const RETRYABLE_MESSAGE =
  /^(?:Connection terminated|Query read timeout|timeout exceeded|timeout expired|Client (?:was closed|has encountered))/i;

/** Ours: P2 or P3 of the port would break. */
export function isBrokenPromise(error: unknown): boolean {
  return error instanceof DatabaseError && error.state === "SK002";
}

/** The prepared statement is another session's: a pooler is in between that cannot follow them. Nothing was run. */
export function isLostStatement(error: unknown): boolean {
  const state = stateOf(error);
  return state === "26000" || state === "42P05";
}

/** The transaction was undone, and would succeed if it came again at once. */
export function isConflict(error: unknown): boolean {
  const state = stateOf(error);
  return state === "40001" || state === "40P01";
}

function isRetryable(state: string | undefined, cause: unknown): boolean {
  if (state !== undefined) return state in RETRYABLE || state.slice(0, 2) in RETRYABLE;
  return cause instanceof Error && RETRYABLE_MESSAGE.test(cause.message);
}

function stateOf(cause: unknown): string | undefined {
  const { code } = (cause ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}
