import { EXIT, type ExitCode } from "./exit-codes.ts";

/** What became of a call, by the `code` of the client's errors. */
const EXIT_OF: { readonly [code: string]: ExitCode } = {
  ACQUIRE_TIMEOUT: EXIT.noSlot,
  OVERLOADED: EXIT.noSlot,
  THROTTLED: EXIT.noSlot,
  UNAVAILABLE: EXIT.unreachable,
  REFUSED: EXIT.refused,
};

/** Says what happened: a sentence, or JSON where a script reads. */
export function serviceFailure(error: unknown, isJson: boolean): ExitCode {
  const { code, message, retryAfterMs } = error as { code?: string; message: string; retryAfterMs?: number };
  process.stderr.write(
    isJson ? `${JSON.stringify({ error: code ?? "USAGE", message, retryAfterMs })}\n` : `${message}\n`,
  );
  if (error instanceof TypeError) return EXIT.usage;
  return EXIT_OF[code ?? ""] ?? EXIT.failed;
}
