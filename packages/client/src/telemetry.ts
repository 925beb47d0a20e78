/** Spans without a dependency on a tracer. A hook that throws changes nothing. */
import { quietly } from "./timing.ts";

/** One span of a tracer. */
export interface SlotSpan {
  /** Sent as the header `traceparent` of every call made inside the span. */
  readonly traceparent?: string | undefined;
  /** `granted`, `unguarded`, `released`, or the `code` of the error; `aborted` when the caller's signal ended the wait. */
  end(result: string, error?: unknown): void;
}

/** The hook that starts spans. */
export interface Telemetry {
  /** `wait`: from asking to the outcome. `hold`: from the grant to the release or the loss. */
  start(name: "wait" | "hold", attributes: { readonly hostname: string; readonly bucket: string }): SlotSpan;
}

export function endSpan(span: SlotSpan | undefined, result: string | undefined, error?: unknown): void {
  quietly(() => span?.end(result ?? (error as { code?: string } | null)?.code ?? "aborted", error));
}
