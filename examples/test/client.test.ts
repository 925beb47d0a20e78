// The examples of the client, run: three processes, and spans.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { context, trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { withProgram } from "@slotkeeper/testkit/bundle";
import { buildCommand } from "@slotkeeper/testkit/fleet";
import { Machine } from "@slotkeeper/testkit/one-machine";
import { describe, expect, test } from "vitest";
import { startWorld } from "../../packages/client/test/fixture.ts";
import { openTelemetry } from "../src/opentelemetry.ts";

test("one line moves a program from one process to three, and two jobs at a time stay two", async () => {
  const world = await startWorld();
  const file = fileURLToPath(new URL("../src/processes.ts", import.meta.url));
  await withProgram({ file }, async (program) => {
    expect(await atOnce(program, 1, {})).toEqual({ jobs: 6, most: 2 });
    expect(await atOnce(program, 3, { SLOTKEEPER_URL: world.direct })).toEqual({ jobs: 18, most: 2 });
  });
});

test("one variable moves a program from one machine to a service, and two jobs at a time stay two", async () => {
  buildCommand();
  const world = await startWorld();
  const machine = new Machine(1);
  const file = fileURLToPath(new URL("../src/one-machine.ts", import.meta.url));
  const commands = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url));
  const local = { SLOTKEEPER_SOCKET: machine.socket, PATH: `${commands}:${process.env["PATH"]}` };
  try {
    await withProgram({ file }, async (program) => {
      expect(await atOnce(program, 3, local)).toEqual({ jobs: 18, most: 2 });
      expect(await atOnce(program, 3, { SLOTKEEPER_URL: world.direct })).toEqual({ jobs: 18, most: 2 });
    });
  } finally {
    await machine.close();
  }
}, 120_000);

/** Runs this number of processes; how many jobs they did, and how many at the same time. */
async function atOnce(file: string, processes: number, environment: Record<string, string>) {
  const outputs = await Promise.all(Array.from({ length: processes }, () => output(file, environment)));
  const lines = outputs.join("").trim().split("\n");
  const events = lines
    .map((line) => line.split(" "))
    .map(([at, what]) => ({ at: Number(at), by: what === "start" ? 1 : -1 }));
  // At the same millisecond a slot was given back before it was taken.
  events.sort((a, b) => a.at - b.at || a.by - b.by);
  let running = 0;
  const most = Math.max(...events.map(({ by }) => (running += by)));
  return { jobs: lines.length / 2, most };
}

function output(file: string, environment: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file], { env: { ...process.env, ...environment } });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.on("close", (code) => (code === 0 ? resolve(text) : reject(new Error(text))));
  });
}

describe("OpenTelemetry", () => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const telemetry = openTelemetry(provider.getTracer("test"));

  test("a run has a span for the wait and one for the hold, and the calls carry their trace", async () => {
    exporter.reset();
    const world = await startWorld();
    await world.client({ telemetry }).run({ hostname: "example.com", bucket: "me" }, () => {});
    const spans = exporter.getFinishedSpans();
    expect(
      spans.map(({ name, attributes }) => [name, attributes["slotkeeper.result"], attributes["server.address"]]),
    ).toEqual([
      ["slotkeeper.wait", "granted", "example.com"],
      ["slotkeeper.hold", "released", "example.com"],
    ]);
    const sent = world.proxy.seen.map(({ headers }) => headers["traceparent"]);
    const expected = spans.map((span) => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`);
    expect(sent).toEqual(expected);
    expect(trace.getSpan(context.active())).toBeUndefined();
  });

  test("a wait that fails says with which error", async () => {
    exporter.reset();
    const world = await startWorld();
    await world.proxy.refuse();
    const acquired = world.client({ telemetry, maxWaitMs: 200 }).acquire({ hostname: "example.com" });
    await expect(acquired).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(exporter.getFinishedSpans().map(({ attributes }) => attributes["slotkeeper.result"])).toEqual([
      "UNAVAILABLE",
    ]);
    await world.proxy.accept();
  });

  test("without a hook no call carries a trace, and a hook that throws changes nothing", async () => {
    const world = await startWorld();
    await world.client().run({ hostname: "example.com" }, () => {});
    expect(world.proxy.seen.some(({ headers }) => "traceparent" in headers)).toBe(false);
    const broken = {
      start: () => {
        throw new Error("the hook's own");
      },
    };
    expect(await world.client({ telemetry: broken }).run({ hostname: "example.com" }, () => "done")).toBe("done");
  });
});
