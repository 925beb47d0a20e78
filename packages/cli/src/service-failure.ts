import { EXIT, type ExitCode } from "./exit-codes.ts";

/** The exit code for each `code` of the client's errors. */
const EXIT_OF: { readonly [code: string]: ExitCode } = {
  ACQUIRE_TIMEOUT: EXIT.noSlot,
  OVERLOADED: EXIT.noSlot,
  THROTTLED: EXIT.noSlot,
  UNAVAILABLE: EXIT.unreachable,
  REFUSED: EXIT.refused,
};

/** Prints what happened: a sentence, or JSON for scripts. */
export function serviceFailure(error: unknown, isJson: boolean): ExitCode {
  const failure = error as { code?: string; message: string; status?: number; retryAfterMs?: number };
  const { code, retryAfterMs } = failure;
  const hint = failure.status === 401 ? " Give it by SLOTKEEPER_AUTH__TOKEN or --token." : "";
  const message = failure.message + hint;
  process.stderr.write(
    isJson ? `${JSON.stringify({ error: code ?? "USAGE", message, retryAfterMs })}\n` : `${message}\n`,
  );
  if (error instanceof TypeError) return EXIT.usage;
  return EXIT_OF[code ?? ""] ?? EXIT.failed;
}
