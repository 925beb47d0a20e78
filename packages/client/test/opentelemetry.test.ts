import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  type Span,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { type OpenTelemetryOptions, openTelemetry } from "@slotkeeper/client/opentelemetry";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { startWorld } from "./fixture.ts";

const exporter = new InMemorySpanExporter();
const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer("test");
const measured = new InMemoryMetricExporter(AggregationTemporality.DELTA);
const reader = new PeriodicExportingMetricReader({ exporter: measured });
const meter = new MeterProvider({ readers: [reader] }).getMeter("test");

const HOST = { hostname: "example.com", bucket: "me" };
const ONE_SLOT = { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1 } };

beforeEach(() => exporter.reset());
afterAll(() => reader.shutdown());

function traced(options: OpenTelemetryOptions = {}) {
  return openTelemetry({ tracer, meter, ...options });
}

function traceparentOf(span: Pick<Span, "spanContext">): string {
  const { traceId, spanId } = span.spanContext();
  return `00-${traceId}-${spanId}-01`;
}

/** The finished spans of this name. */
function spans(name: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.name === name);
}

function linksOf(span: ReadableSpan | undefined): string[] {
  return (span?.links ?? []).map(({ context }) => traceparentOf({ spanContext: () => context }));
}

/** Runs the work with the part of an SDK that keeps the active span over asynchronous calls. */
async function withActiveSpans(work: () => Promise<unknown>): Promise<void> {
  const active = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => active.getStore() ?? ROOT_CONTEXT,
    with: (inside, call, self, ...args) => active.run(inside, () => call.apply(self, args)),
    bind: (_inside, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  context.setGlobalContextManager(manager);
  try {
    await work();
  } finally {
    context.disable();
  }
}

describe("spans", () => {
  test("a run has a span for the wait and one for the hold, and the calls carry them", async () => {
    const world = await startWorld();
    await world.client(traced()).run(HOST, () => {});
    const finished = exporter.getFinishedSpans();
    expect(finished.map(({ name, attributes }) => ({ name, ...attributes }))).toEqual([
      {
        name: "slotkeeper.wait",
        "server.address": "example.com",
        "slotkeeper.bucket": "me",
        "slotkeeper.result": "granted",
      },
      {
        name: "slotkeeper.hold",
        "server.address": "example.com",
        "slotkeeper.bucket": "me",
        "slotkeeper.result": "released",
      },
    ]);
    expect(world.proxy.seen.map(({ headers }) => headers["traceparent"])).toEqual(finished.map(traceparentOf));
  });

  test("a wait is linked to the hold that ended it, and not to holds of a host with a free slot", async () => {
    const world = await startWorld(ONE_SLOT);
    const keeper = world.client(traced());
    const first = await keeper.acquire(HOST);
    const other = await keeper.acquire({ hostname: "other.example" });
    const second = keeper.acquire(HOST);
    await world.until({ slots: 2, sessions: 1 });
    await first.release();
    await (await second).release();
    await other.release();
    const holds = spans("slotkeeper.hold");
    expect(spans("slotkeeper.wait").map(linksOf)).toEqual([[], [], [traceparentOf(holds[0] as ReadableSpan)]]);
    // A free slot: nothing was waited for, although another caller holds one of the host.
    const wide = await startWorld();
    exporter.reset();
    const held = await wide.client(traced()).acquire({ hostname: "example.com", bucket: "one" });
    await wide.client(traced()).run({ hostname: "example.com", bucket: "two" }, () => {});
    await held.release();
    expect(spans("slotkeeper.wait").map(linksOf)).toEqual([[], []]);
  });

  test("a wait that times out is linked to the holder that kept the slot", async () => {
    const world = await startWorld({ fairQueue: { ...ONE_SLOT.fairQueue, pollWindowMs: 1_000 } });
    const keeper = world.client(traced());
    const held = await keeper.acquire(HOST);
    const waiting = keeper.acquire({ ...HOST, maxWaitMs: 1_500, onPending: () => {} });
    await expect(waiting).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    await held.release();
    const [granted, timeout] = spans("slotkeeper.wait");
    expect(timeout?.attributes["slotkeeper.result"]).toBe("ACQUIRE_TIMEOUT");
    // The holder has made no call since its grant, so the service knows the span of its wait.
    expect(linksOf(timeout)).toEqual([traceparentOf(granted as ReadableSpan)]);
  });

  test("a wait that fails ends with its error", async () => {
    const world = await startWorld();
    await world.proxy.refuse();
    const acquired = world.client({ ...traced(), maxWaitMs: 200 }).acquire(HOST);
    await expect(acquired).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const [failed] = spans("slotkeeper.wait");
    expect(failed?.attributes["slotkeeper.result"]).toBe("UNAVAILABLE");
    expect(failed?.events.map(({ name }) => name)).toEqual(["exception"]);
    await world.proxy.accept();
  });

  test("names of holders that are not valid add no link, and no more than eight are read", async () => {
    const world = await startWorld();
    const valid = Array.from({ length: 20 }, (_, at) => `00-${"a".repeat(32)}-${String(at + 1).padStart(16, "0")}-01`);
    const headers = [
      `00-${"0".repeat(32)}-${"a".repeat(16)}-01, 01-${"a".repeat(32)}-${"a".repeat(16)}-01, x, ,`,
      valid.join(","),
      [valid[0], valid[0]].join(", "),
      "a".repeat(10_000),
    ];
    for (const [at, expected] of [0, 8, 1, 0].entries()) {
      const named: typeof fetch = async (input, init) => {
        const response = await fetch(input, init);
        return new Response(response.body, { headers: { "X-Slot-Holders": headers[at] as string } });
      };
      exporter.reset();
      await world.client(traced({ fetch: named })).run(HOST, () => {});
      expect(linksOf(spans("slotkeeper.wait")[0])).toHaveLength(expected);
      expect(linksOf(spans("slotkeeper.hold")[0])).toHaveLength(0);
    }
  });

  test("calls are sent inside their span, and with `propagate: false` none carries the trace itself", async () => {
    const world = await startWorld();
    const active: (string | undefined)[] = [];
    const seeing: typeof fetch = (input, init) => {
      active.push(trace.getActiveSpan()?.spanContext().spanId);
      return fetch(input, init);
    };
    await withActiveSpans(() => world.client(traced({ propagate: false, fetch: seeing })).run(HOST, () => {}));
    expect(active).toEqual(exporter.getFinishedSpans().map((span) => span.spanContext().spanId));
    expect(world.proxy.seen.some(({ headers }) => "traceparent" in headers)).toBe(false);
    expect(world.proxy.seen.every(({ headers }) => headers["content-type"] === "application/json")).toBe(true);
  });

  test("both spans are children of the active span", async () => {
    const world = await startWorld();
    await withActiveSpans(() =>
      tracer.startActiveSpan("job", async (job) => {
        await world.client(traced()).run(HOST, () => {});
        job.end();
      }),
    );
    const [wait, hold, job] = exporter.getFinishedSpans();
    const parents = [wait, hold].map((span) => span?.parentSpanContext?.spanId);
    expect(parents).toEqual([job?.spanContext().spanId, job?.spanContext().spanId]);
  });

  test("without a provider nothing is sent, and a tracer that throws changes nothing", async () => {
    const world = await startWorld();
    expect(await world.client(openTelemetry()).run(HOST, () => "done")).toBe("done");
    expect(world.proxy.seen.some(({ headers }) => "traceparent" in headers)).toBe(false);
    const broken = {
      startSpan: () => {
        throw new Error("the tracer's own");
      },
    } as unknown as Tracer;
    expect(await world.client(traced({ tracer: broken })).run(HOST, () => "done")).toBe("done");
    expect(trace.getActiveSpan()).toBeUndefined();
  });

  test("unknown options and wrong types are refused", () => {
    const options = { trace: {}, propagate: "no" } as unknown as OpenTelemetryOptions;
    expect(() => openTelemetry(options)).toThrow(
      'Unknown option `trace` (known: `tracer`, `meter`, `fetch`, `propagate`); Expected `propagate` to be a boolean, got "no"',
    );
  });
});

test("the metrics count waits and holds by host and result, never by bucket", async () => {
  const world = await startWorld();
  await world.client(traced()).run({ hostname: "metrics.example", bucket: "me" }, () => {});
  await reader.forceFlush();
  const scopes = measured.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
  const points = scopes.flatMap(({ metrics }) =>
    metrics.flatMap(({ descriptor: { name, unit }, dataPoints }) =>
      dataPoints.map(({ attributes, value }) => ({
        name,
        unit,
        attributes,
        count: (value as { count: number }).count,
      })),
    ),
  );
  const address = { "server.address": "metrics.example" };
  expect(points.filter(({ attributes }) => attributes["server.address"] === "metrics.example")).toEqual([
    {
      name: "slotkeeper_client_wait_seconds",
      unit: "s",
      attributes: { ...address, "slotkeeper.result": "granted" },
      count: 1,
    },
    {
      name: "slotkeeper_client_hold_seconds",
      unit: "s",
      attributes: { ...address, "slotkeeper.result": "released" },
      count: 1,
    },
  ]);
});
