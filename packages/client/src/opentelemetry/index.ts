/**
 * `@slotkeeper/client/opentelemetry`: spans and metrics of a client, for the providers that an OpenTelemetry SDK has
 * registered. Without an SDK, the API ignores both.
 */
import {
  context,
  type Histogram,
  isSpanContextValid,
  type Meter,
  metrics,
  type Span,
  type SpanContext,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { check, type SlotClientOptions } from "../options.ts";
import type { Telemetry } from "../telemetry.ts";
import { now } from "../timing.ts";

/** Options of `openTelemetry`. Unknown keys are refused. */
export interface OpenTelemetryOptions {
  /** Starts the spans. Default: the tracer `@slotkeeper/client` of the registered provider. */
  readonly tracer?: Tracer;
  /** Makes the histograms. Default: the meter `@slotkeeper/client` of the registered provider. */
  readonly meter?: Meter;
  /** The function that sends requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
  /**
   * Whether calls carry the header `traceparent`. Default: true. Pass `false` if an instrumentation of `fetch` sends the
   * header, because a request must have only one.
   */
  readonly propagate?: boolean;
}

const KINDS = { tracer: "an object", meter: "an object", fetch: "a function", propagate: "a boolean" } as const;
const NAME = "@slotkeeper/client";
/** Seconds: from a grant at once to the longest default hold of a slot. */
const BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 300, 3600];
const TRACEPARENT = /^ *00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2}) *$/;
/** The service names at most this number of holders in one answer. */
const MOST_HOLDERS = 8;

/**
 * The options that give a client spans and metrics. The spans `slotkeeper.wait` and `slotkeeper.hold` are children of the
 * active span. A wait is linked to the spans of the holders that it waited for, as far as the service knows them.
 *
 * @throws {TypeError} if an option is unknown or has the wrong type.
 * @example
 * const keeper = new SlotClient({ url: "http://127.0.0.1:8080", ...openTelemetry() });
 */
export function openTelemetry(
  options: OpenTelemetryOptions = {},
): Required<Pick<SlotClientOptions, "telemetry" | "fetch">> {
  const given = check(options, KINDS);
  const { tracer = trace.getTracer(NAME), meter = metrics.getMeter(NAME), fetch: send = fetch } = given;
  const histograms = { wait: durations(meter, "wait"), hold: durations(meter, "hold") };
  const waits = new Map<string, Wait>();

  const start: Telemetry["start"] = (name, { hostname, bucket }) => {
    const host = { "server.address": hostname };
    const span = tracer.startSpan(`slotkeeper.${name}`, { attributes: { ...host, "slotkeeper.bucket": bucket } });
    const traceparent = traceparentOf(span.spanContext());
    if (traceparent && name === "wait") waits.set(traceparent, { span, linked: new Set() });
    const startedAt = now();
    return {
      traceparent,
      end(result, error) {
        if (traceparent) waits.delete(traceparent);
        histograms[name].record((now() - startedAt) / 1000, { ...host, "slotkeeper.result": result });
        span.setAttribute("slotkeeper.result", result);
        if (error instanceof Error) span.recordException(error);
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  };

  /** Sends inside the span, so that the span of an instrumentation of `fetch` becomes its child. */
  const sendInside: typeof fetch = async (input, init) => {
    // The client gives its headers as an object.
    const { traceparent = "", ...headers } = (init?.headers ?? {}) as { readonly [name: string]: string };
    const parent = spanContextOf(traceparent);
    if (parent === undefined) return send(input, init);
    const call = () => send(input, given.propagate === false ? { ...init, headers } : init);
    const response = await context.with(trace.setSpanContext(context.active(), parent), call);
    link(waits.get(traceparent), response.headers.get("x-slot-holders"));
    return response;
  };

  return { telemetry: { start }, fetch: sendInside };
}

interface Wait {
  readonly span: Span;
  readonly linked: Set<string>;
}

function link(wait: Wait | undefined, holders: string | null): void {
  for (const holder of holders?.split(",", MOST_HOLDERS) ?? []) {
    const of = spanContextOf(holder);
    if (wait === undefined || of === undefined || wait.linked.has(of.spanId)) continue;
    wait.linked.add(of.spanId);
    wait.span.addLink({ context: { ...of, isRemote: true }, attributes: { "slotkeeper.link": "holder" } });
  }
}

function durations(meter: Meter, name: "wait" | "hold"): Histogram {
  const description = name === "wait" ? "Time from an acquire to its result" : "Time from a grant to its end";
  const advice = { explicitBucketBoundaries: BOUNDS };
  return meter.createHistogram(`slotkeeper_client_${name}_seconds`, { description, unit: "s", advice });
}

/** Returns `undefined` without a provider. */
function traceparentOf(of: SpanContext): string | undefined {
  const flags = of.traceFlags.toString(16).padStart(2, "0");
  return isSpanContextValid(of) ? `00-${of.traceId}-${of.spanId}-${flags}` : undefined;
}

function spanContextOf(traceparent: string): SpanContext | undefined {
  const [, traceId = "", spanId = "", flags = ""] = TRACEPARENT.exec(traceparent) ?? [];
  const of = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
  return isSpanContextValid(of) ? of : undefined;
}
