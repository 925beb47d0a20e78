import { adviceOf, knownFailure } from "../failures/failure-table.ts";

/**
 * A failed call through PostgREST, as a cause for `DatabaseError`. `code` is the SQLSTATE or the `PGRST…` code of
 * PostgREST's error body, `HTTP_<status>` for a reply without one, or the code of the socket. No message contains the
 * Authorization header or an argument: only `message` and `hint` of the error body are used, not `details`.
 */
export class PostgrestFailure extends Error {
  override readonly name = "PostgrestFailure";
  readonly code: string;
  /** The message without `fix`, as a sentence. */
  readonly what: string;
  /** What an operator can do about it. Undefined: the code alone does not show it. */
  readonly fix: string | undefined;

  constructor(code: string, message: string, options?: ErrorOptions) {
    const fix = adviceOf(knownFailure(code), "postgrest");
    const what = `${message.replace(/\.$/, "")}.`;
    super(fix === undefined ? message : `${what} ${fix}`, options);
    this.code = code;
    this.what = what;
    this.fix = fix;
  }
}

interface ErrorBody {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly hint?: unknown;
}

/** Creates a failure from a reply whose status is not 2xx. */
export function failureOfReply(status: number, text: string, location: string | null): PostgrestFailure {
  const { code, message, hint } = parseBody(text);
  if (typeof code === "string" && typeof message === "string") {
    return new PostgrestFailure(code, typeof hint === "string" ? `${message} (${hint})` : message);
  }
  const what =
    location === null
      ? "and no error message of PostgREST"
      : `and redirects to ${originOf(location)}: set \`baseUrl\` to that address`;
  return new PostgrestFailure(`HTTP_${status}`, `The reply has status ${status} ${what}`);
}

/** Creates a failure from an error of `fetch`: a `TypeError` whose cause is the error of the socket. */
export function failureOfFetch(error: unknown): PostgrestFailure {
  const { cause } = error as { readonly cause?: unknown };
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const reason = typeof message === "string" && message !== "" ? message : "the request failed";
  return new PostgrestFailure(typeof code === "string" ? code : "FETCH_FAILED", reason, { cause: error });
}

/** The connection ended before the reply, as idle connections do. The call may have taken effect. */
export function isCut({ code }: PostgrestFailure): boolean {
  return code === "ECONNRESET" || code === "EPIPE" || code === "UND_ERR_SOCKET";
}

function parseBody(text: string): ErrorBody {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    return {};
  }
}

function originOf(location: string): string {
  return URL.canParse(location) ? new URL(location).origin : "another path";
}
