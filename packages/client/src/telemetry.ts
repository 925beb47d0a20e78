/**
 * Spans without a dependency on a tracer. A hook that throws changes nothing.
 */
export interface SlotSpan {
  /** Sent as the header `traceparent` of every call made inside the span. */
  readonly traceparent?: string | undefined;
  /** `result` is `granted`, `released`, or the `code` of the error; `aborted` when the caller's signal ended it. */
  end(result: string, error?: unknown): void;
}

export interface Telemetry {
  /** `wait`: from asking to the outcome. `hold`: from the grant to the release or the loss. */
  start(name: "wait" | "hold", attributes: { readonly hostname: string; readonly bucket: string }): SlotSpan;
}

/** Undefined when unused or when the hook throws. */
export function startSpan(
  telemetry: Telemetry | undefined,
  name: "wait" | "hold",
  attributes: { readonly hostname: string; readonly bucket: string },
): SlotSpan | undefined {
  try {
    return telemetry?.start(name, attributes);
  } catch {
    return undefined;
  }
}

export function endSpan(span: SlotSpan | undefined, error?: unknown, result?: string): void {
  try {
    span?.end(result ?? (error as { code?: string } | undefined)?.code ?? "aborted", error);
  } catch {
    // The hook's own failure.
  }
}
