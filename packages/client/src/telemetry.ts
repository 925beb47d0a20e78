/** Spans without a dependency on a tracer. Errors of a hook are ignored. */
import { quietly } from "./timing.ts";

/** One span of a tracer. */
export interface SlotSpan {
  /** Sent as the header `traceparent` of every call made inside the span. */
  readonly traceparent?: string | undefined;
  /**
   * Ends the span. `result` is `granted`, `unguarded`, `released` or the `code` of the error; `aborted` if the signal
   * ended the wait.
   */
  end(result: string, error?: unknown): void;
}

/** The hook that starts spans. */
export interface Telemetry {
  /** Starts a span. `wait` lasts from the call to its outcome, `hold` from the grant to the release or loss. */
  start(name: "wait" | "hold", attributes: { readonly hostname: string; readonly bucket: string }): SlotSpan;
}

export function endSpan(span: SlotSpan | undefined, result: string | undefined, error?: unknown): void {
  quietly(() => span?.end(result ?? (error as { code?: string } | null)?.code ?? "aborted", error));
}
