import { unavailable } from "./call-service.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { KEY_HINTS } from "./service-flags.ts";

/** The exit code for each `code` of the client's errors. */
const EXIT_OF: { readonly [code: string]: ExitCode } = {
  ACQUIRE_TIMEOUT: EXIT.noSlot,
  OVERLOADED: EXIT.noSlot,
  THROTTLED: EXIT.noSlot,
  UNAVAILABLE: EXIT.unreachable,
  REFUSED: EXIT.refused,
  KEEPER: EXIT.keeper,
};

interface Failure extends Error {
  readonly code?: string;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** The client's errors have the address in a field. */
  readonly url?: string;
}

/** Prints what happened: a sentence, or JSON for scripts. */
export function serviceFailure(error: unknown, isJson: boolean): ExitCode {
  const failure = error as Failure;
  const { code, retryAfterMs } = failure;
  const message = sentenceOf(failure);
  process.stderr.write(
    isJson ? `${JSON.stringify({ error: code ?? "USAGE", message, retryAfterMs })}\n` : `${message}\n`,
  );
  if (error instanceof TypeError) return EXIT.usage;
  return EXIT_OF[code ?? ""] ?? EXIT.failed;
}

function sentenceOf({ code, message, status, url, cause }: Failure): string {
  if (status === 401) return `${message} ${KEY_HINTS.token}`;
  // The client's own message has the code of the system (`fetch failed (ECONNREFUSED)`).
  const root = (cause as Error | undefined)?.cause;
  return code === "UNAVAILABLE" && url !== undefined && root !== undefined ? unavailable(url, root) : message;
}
