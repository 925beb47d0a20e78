// Spans for OpenTelemetry: `slotkeeper.wait` and `slotkeeper.hold`, children of whatever span is active.

import { isSpanContextValid, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import type { Telemetry } from "@slotkeeper/client";

/** `new SlotClient({ url, telemetry: openTelemetry(trace.getTracer("my-app")) })` */
export function openTelemetry(tracer: Tracer): Telemetry {
  return {
    start(name, { hostname, bucket }) {
      const attributes = { "server.address": hostname, "slotkeeper.bucket": bucket };
      const span = tracer.startSpan(`slotkeeper.${name}`, { attributes });
      const context = span.spanContext();
      const flags = context.traceFlags.toString(16).padStart(2, "0");
      return {
        // Sent with every call to the service, so that proxies on the way can join the trace.
        traceparent: isSpanContextValid(context) ? `00-${context.traceId}-${context.spanId}-${flags}` : undefined,
        end(result, error) {
          span.setAttribute("slotkeeper.result", result);
          if (error instanceof Error) span.recordException(error);
          if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
  };
}
