/** The same small app in each framework: `/` does the work, `/stream` does it between two parts of its body. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { perTenant as expressPerTenant } from "@slotkeeper/client/express";
import { perTenant as fastifyPerTenant } from "@slotkeeper/client/fastify";
import { perTenant as honoPerTenant, type KeyedGate, type SemaphoreGate } from "@slotkeeper/client/hono";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { stream } from "hono/streaming";

type Options = ({ gate: SemaphoreGate; slots: number } | { gate: KeyedGate; slots?: undefined }) & {
  timeoutMs?: number;
  onRefused?: (error: unknown) => void;
};

export interface App {
  readonly ask: (path: string, tenant?: string, signal?: AbortSignal) => Promise<Response>;
  readonly close: () => Promise<unknown>;
}

/** Each tenant is named by the header `x-tenant`. */
export type StartApp = (options: Options, work: () => Promise<void>) => Promise<App>;

async function* parts(work: () => Promise<void>) {
  yield "first ";
  await work();
  yield "last";
}

function asked(url: string, path: string, tenant?: string, signal?: AbortSignal): Request {
  return new Request(url + path, { ...(tenant && { headers: { "x-tenant": tenant } }), ...(signal && { signal }) });
}

async function listening(listener: RequestListener): Promise<App> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async () => {
    server.close();
    server.closeAllConnections();
  };
  return { ask: async (...request) => fetch(asked(url, ...request)), close };
}

export const APPS: Record<string, StartApp> = {
  Express: async (options, work) => {
    const app = express();
    app.use(expressPerTenant({ ...options, tenant: (request) => request.get("x-tenant") }));
    app.get("/", (_, response, next) => {
      work().then(() => response.send("done"), next);
    });
    app.get("/stream", (_, response) => void Readable.from(parts(work)).pipe(response));
    return listening(app);
  },
  Fastify: async (options, work) => {
    const app = fastify();
    const tenant = ({ headers }: { headers: Record<string, unknown> }) => headers["x-tenant"] as string | undefined;
    app.addHook("onRequest", fastifyPerTenant({ ...options, tenant }));
    app.get("/", async () => {
      await work();
      return "done";
    });
    app.get("/stream", (_, reply) => reply.send(Readable.from(parts(work), { objectMode: false })));
    await app.ready();
    return listening((request, response) => app.routing(request, response));
  },
  Hono: async (options, work) => {
    const app = new Hono();
    app.use(honoPerTenant({ ...options, tenant: (context) => context.req.header("x-tenant") }));
    app.get("/", async (context) => {
      await work();
      return context.text("done");
    });
    app.get("/stream", (context) =>
      stream(context, async (body) => {
        for await (const part of parts(work)) await body.write(part);
      }),
    );
    return { ask: async (...request) => app.fetch(asked("http://app", ...request)), close: async () => {} };
  },
};
