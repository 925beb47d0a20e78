// The examples of the client, run: middleware for three frameworks, three processes, and spans.
import { spawn } from "node:child_process";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { context, trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { SlotClient } from "@slotkeeper/client";
import { withProgram } from "@slotkeeper/testkit/bundle";
import { buildCommand } from "@slotkeeper/testkit/fleet";
import { Machine } from "@slotkeeper/testkit/one-machine";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { startWorld } from "../../packages/client/test/fixture.ts";
import { perTenant as expressPerTenant } from "../src/express.ts";
import { perTenant as fastifyPerTenant } from "../src/fastify.ts";
import { perTenant as honoPerTenant } from "../src/hono.ts";
import { openTelemetry } from "../src/opentelemetry.ts";

type Fetch = (tenant: string, signal?: AbortSignal) => Promise<number>;
type Work = () => Promise<void>;

/** An app that does the work for each request, two per tenant at a time. */
type App = (keeper: SlotClient, work: Work) => Promise<{ ask: Fetch; close: () => Promise<unknown> }>;

async function listening(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask: Fetch = async (tenant, signal) => {
    const response = await fetch(url, { headers: { "x-tenant": tenant }, ...(signal && { signal }) });
    await response.text();
    return response.status;
  };
  return { ask, close: async () => server.closeAllConnections() };
}

const apps: Record<string, App> = {
  Express: async (keeper, work) => {
    const app = express();
    app.use(expressPerTenant(keeper, 2));
    app.get("/", async (_, response) => {
      await work();
      response.send("done");
    });
    return listening(app);
  },
  Fastify: async (keeper, work) => {
    const app = fastify();
    app.addHook("onRequest", fastifyPerTenant(keeper, 2));
    app.get("/", async () => {
      await work();
      return "done";
    });
    await app.ready();
    return listening((request, response) => app.routing(request, response));
  },
  Hono: async (keeper, work) => {
    const app = new Hono();
    app.use(honoPerTenant(keeper, 2));
    app.get("/", async (context) => {
      await work();
      return context.text("done");
    });
    const ask: Fetch = async (tenant, signal) => {
      const request = new Request("http://app/", { headers: { "x-tenant": tenant }, ...(signal && { signal }) });
      return (await app.fetch(request)).status;
    };
    return { ask, close: async () => {} };
  },
};

describe.each(Object.entries(apps))("the middleware for %s", (_, start) => {
  test("lets two requests of a tenant run at a time, and keeps tenants apart", async () => {
    const world = await startWorld();
    let running = 0;
    let most = 0;
    const { ask, close } = await start(world.client(), async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 30));
      running--;
    });
    expect(await Promise.all(Array.from({ length: 8 }, () => ask("ann")))).toEqual(
      Array.from({ length: 8 }, () => 200),
    );
    expect(most).toBe(2);
    most = 0;
    await Promise.all(["ann", "ann", "ann", "bob", "bob", "bob"].map((tenant) => ask(tenant)));
    expect(most).toBe(4);
    await world.until({ slots: 0, sessions: 0 });
    await close();
  });

  test("a request that is given up gives its place back, and a service that is away is a 503", async () => {
    const world = await startWorld();
    let finish = () => {};
    const work = () => new Promise<void>((resolve) => (finish = resolve));
    const { ask, close } = await start(world.client({ maxAttempts: 2 }), work);
    const first = [ask("ann"), ask("ann")];
    await world.until({ slots: 2, sessions: 0 });
    const controller = new AbortController();
    const waiting = ask("ann", controller.signal).catch(() => "gone");
    await world.until({ slots: 2, sessions: 1 });
    controller.abort();
    await waiting;
    await world.until({ slots: 2, sessions: 0 });
    await world.proxy.refuse();
    expect(await ask("bob")).toBe(503);
    await world.proxy.accept();
    finish();
    await Promise.race(first);
    await close();
  });
});

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
