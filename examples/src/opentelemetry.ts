// Spans and metrics of a client, collected by the SDK of OpenTelemetry. The second job waits for the first, so the span of
// its wait is linked to the span in which the first job held the slot.
//
//   SLOTKEEPER_URL=http://127.0.0.1:8080 node examples/dist/opentelemetry.js

import { metrics, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { SlotClient } from "@slotkeeper/client";
import { openTelemetry } from "@slotkeeper/client/opentelemetry";

// A program of yours registers the SDK once, at its start, with an exporter that sends to a collector.
const spans = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: measured });
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));

const keeper = new SlotClient({ url: process.env["SLOTKEEPER_URL"] ?? "http://127.0.0.1:8080", ...openTelemetry() });
const jobs = keeper.semaphore("report", 1);

const first = await jobs.acquire();
const second = jobs.run(() => {});
await new Promise((resolve) => setTimeout(resolve, 200));
await first.release();
await second;

const finished = spans.getFinishedSpans();
for (const { name, attributes, links } of finished) {
  const holders = links.map(({ context }) => finished.find((span) => span.spanContext().spanId === context.spanId));
  const waitedFor = holders.map((holder) => `, waited for the ${holder?.name} of the other job`);
  console.log(`${name}: ${String(attributes["slotkeeper.result"])}${waitedFor.join("")}`);
}

await reader.forceFlush();
const scopes = measured.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
for (const { descriptor, dataPoints } of scopes.flatMap((scope) => scope.metrics)) {
  const count = dataPoints.reduce((sum, { value }) => sum + (value as { count: number }).count, 0);
  console.log(`${descriptor.name}: ${count} values`);
}
await reader.shutdown();
