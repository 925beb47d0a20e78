import { metrics } from "@opentelemetry/api";
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { MemoryStore } from "@slotkeeper/queue";
import { METRICS, type Metric } from "@slotkeeper/server/internals";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startFixture, stopFixture } from "../service-fixture.ts";

let exporter: InMemoryMetricExporter;
let reader: PeriodicExportingMetricReader;

beforeEach(() => {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  reader = new PeriodicExportingMetricReader({ exporter });
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
});
afterEach(async () => {
  metrics.disable();
  await reader.shutdown();
});

/** What was exported last, by name. */
async function exported() {
  exporter.reset();
  await reader.forceFlush();
  const [last] = exporter.getMetrics();
  const all = (last?.scopeMetrics ?? []).flatMap((scope) => scope.metrics);
  return new Map(all.map((metric) => [metric.descriptor.name, metric]));
}

/** The series of `/metrics` and of the export, in one form. Both lists are sorted. */
async function compared(url: string) {
  const page = await (await fetch(`${url}/metrics`)).text();
  const shown = page.split("\n").filter((line) => line !== "" && !line.startsWith("#") && !line.includes("_bucket{"));
  const sent = [...(await exported())].flatMap(([name, { dataPoints, dataPointType }]) =>
    dataPoints.flatMap(({ attributes, value }) => {
      const pairs = Object.entries(attributes).map(([label, text]) => `${label}="${String(text)}"`);
      const labels = pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
      if (dataPointType !== DataPointType.HISTOGRAM) return [`${name}${labels} ${value as number}`];
      const { sum, count } = value as { sum: number; count: number };
      return [`${name}_sum${labels} ${sum}`, `${name}_count${labels} ${count}`];
    }),
  );
  return { shown: shown.toSorted(), sent: sent.toSorted() };
}

test("a registered provider gets every series of /metrics, under the same name, with the same value", async () => {
  const service = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1 } } });
  const { slotToken } = await service.take();
  await service.acquire();
  await service.release(slotToken);
  // Counts that the calls of this test change, empty histograms, and what only grows with time.
  const isSteady = (line: string) =>
    !/connections|held_polls|cycle_seconds|store_seconds|oldest_wait|process_/.test(line);
  const { shown, sent } = await compared(service.url);
  const isUsed = (line: string) => !/_(?:sum|count)(?:\{.*\})? 0$/.test(line);
  expect(sent.filter(isSteady)).toEqual(shown.filter(isSteady).filter(isUsed));
  expect(sent.length).toBeGreaterThan(40);
});

test("the instruments have the kind, unit and bounds of the catalogue", async () => {
  const service = await startFixture();
  await service.release((await service.take()).slotToken);
  const sent = await exported();
  const kinds = { counter: DataPointType.SUM, gauge: DataPointType.GAUGE, histogram: DataPointType.HISTOGRAM } as const;
  const catalogue = Object.values<Metric>(METRICS).filter(({ name }) => sent.has(name));
  expect(catalogue.map(({ name }) => [name, sent.get(name)?.dataPointType])).toEqual(
    catalogue.map(({ name, kind }) => [name, kinds[kind]]),
  );
  expect(sent.get("slotkeeper_wait_seconds")?.descriptor.unit).toBe("s");
  const [point] = sent.get("slotkeeper_wait_seconds")?.dataPoints ?? [];
  expect(point?.value).toMatchObject({ buckets: { boundaries: METRICS.wait.buckets?.map(([bound]) => bound) } });
});

test("the store of a service that has stopped is not read", async () => {
  const read = vi.spyOn(MemoryStore.prototype, "totals");
  const service = await startFixture();
  await service.take();
  await exported();
  expect(read).toHaveBeenCalled();
  await stopFixture(service);
  read.mockClear();
  await exported();
  expect(read).not.toHaveBeenCalled();
});
