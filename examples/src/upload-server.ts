/**
 * A small upload server that keeps its memory under a budget while clients flood it, beside the same server without
 * limits; and a chart of both.
 *
 *   node examples/dist/upload-server.js [--short] [--chart upload-server.svg]
 *
 * The servers run in separate processes, one after the other, so that each is measured alone. Half-way, another part of
 * the process takes memory for a while, and the governor reacts to that.
 */
import { fork } from "node:child_process";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { drawChart } from "./upload-server/chart.ts";
import { flood } from "./upload-server/flood.ts";
import { BUDGET_MB, type Report, type Sample, serve } from "./upload-server/server.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    chart: { type: "string", default: "upload-server.svg" },
    serve: { type: "string" },
  },
});

/**
 * By default V8 collects the buffers of finished uploads in the background, and on a busy machine late. They count as
 * memory in use until then. With a small heap it collects them at the latest when they are 64 MB.
 */
const COLLECTS_EARLY = ["--max-old-space-size=64"];

/** Runs one server under the flood. Returns its samples, and how many uploads it took. */
async function observe(kind: string, durationMs: number): Promise<{ samples: Sample[]; uploads: number }> {
  const program = process.argv[1] ?? "";
  const server = fork(program, ["--serve", kind, ...(values.short ? ["--short"] : [])], { execArgv: COLLECTS_EARLY });
  const samples: Sample[] = [];
  const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`The server ended with ${code}`)));
    server.on("message", (report: Report) => {
      if (report.type === "listening") resolve(report.port);
      else samples.push(report);
    });
  });
  const uploads = await flood(port, durationMs);
  server.send("enough");
  await ended;
  return { samples, uploads };
}

const mostMb = (samples: readonly Sample[]): number => Math.round(Math.max(...samples.map(({ rssMb }) => rssMb)));

const mostAtOnce = (samples: readonly Sample[]): number => Math.max(...samples.map(({ inUse }) => inUse));

async function main(): Promise<void> {
  const durationMs = values.short ? 3500 : 9000;
  const limited = await observe("limited", durationMs);
  const unlimited = await observe("unlimited", durationMs);
  const limits = limited.samples.map(({ limit }) => limit);
  writeFileSync(values.chart, drawChart(limited.samples, unlimited.samples, BUDGET_MB));
  const summary = {
    budgetMb: BUDGET_MB,
    limited: { mostMb: mostMb(limited.samples), mostAtOnce: mostAtOnce(limited.samples), uploads: limited.uploads },
    unlimited: {
      mostMb: mostMb(unlimited.samples),
      mostAtOnce: mostAtOnce(unlimited.samples),
      uploads: unlimited.uploads,
    },
    limits: { least: Math.min(...limits), most: Math.max(...limits) },
    chart: values.chart,
  };
  console.log(JSON.stringify(summary, undefined, 2));
}

if (values.serve === undefined) await main();
else serve(values.serve === "limited", values.short);
