/**
 * Errors as PostgREST sends them.
 *
 * Errors: "PostgREST error messages follow the PostgreSQL error structure. It includes MESSAGE, DETAIL, HINT, ERRCODE and will
 * add an HTTP status code to the response."
 */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly details: string | null;
  readonly hint: string | null;

  constructor(
    status: number,
    code: string,
    message: string,
    more: { readonly details?: string; readonly hint?: string } = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = more.details ?? null;
    this.hint = more.hint ?? null;
  }

  get body(): string {
    const { code, details, hint, message } = this;
    return JSON.stringify({ code, details, hint, message });
  }
}

/** Errors, HTTP Status Codes: "PostgREST translates PostgreSQL error codes into HTTP status as follows". Whole codes first. */
const STATUS: { readonly [state: string]: number } = {
  "23503": 409,
  "23505": 409,
  "25006": 405,
  "53400": 500,
  P0001: 400,
  "42883": 404,
  "42P01": 404,
  "42P17": 500,
  "08": 503,
  "09": 500,
  "0L": 403,
  "0P": 403,
  "25": 500,
  "28": 403,
  "2D": 500,
  "38": 500,
  "39": 500,
  "3B": 500,
  "40": 500,
  "53": 503,
  "54": 500,
  "55": 500,
  "57": 500,
  "58": 500,
  F0: 500,
  HV: 500,
  P0: 500,
  XX: 500,
};

/** The same table: 42501 is "if authenticated 403, else 401", and "other" is 400. */
function statusOfState(state: string, isAuthenticated: boolean): number {
  if (state === "42501") return isAuthenticated ? 403 : 401;
  // Errors, RAISE errors: "raise an exception of the PTxyz type. For instance to respond with HTTP 402, raise PT402".
  if (/^PT\d{3}$/.test(state)) return Number(state.slice(2));
  return STATUS[state] ?? STATUS[state.slice(0, 2)] ?? 400;
}

interface DatabaseFailure {
  readonly code?: string;
  readonly message: string;
  readonly detail?: string;
  readonly hint?: string;
  /** Only an error that the server sent has one. */
  readonly severity?: string;
}

/** Errors: "PostgREST will forward errors coming from PostgreSQL." */
export function errorOfDatabase(error: unknown, isAuthenticated: boolean): ApiError {
  if (error instanceof ApiError) return error;
  const { code, message, detail, hint, severity } = error as DatabaseFailure;
  if (severity === undefined || code === undefined) {
    // PGRST000 (503): "Could not connect with the database due to an incorrect db-uri or due to the PostgreSQL service not running."
    return new ApiError(503, "PGRST000", "Database connection error. Retrying the connection.", { details: message });
  }
  const more = { ...(detail === undefined ? {} : { details: detail }), ...(hint === undefined ? {} : { hint }) };
  return new ApiError(statusOfState(code, isAuthenticated), code, message, more);
}
