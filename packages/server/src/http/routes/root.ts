import { openApiDocument } from "@slotkeeper/protocol/schemas";
import { scrape } from "../../telemetry/scrape.ts";
import type { ServiceContext } from "../context.ts";
import type { Handler } from "../dispatch.ts";
import type { Live } from "../live-config.ts";

export const livez: Handler<ServiceContext> = (exchange) => exchange.json({ status: "ok" });

export const readyz: Handler<ServiceContext> = async (exchange, { readiness }) => {
  const outcome = await readiness.read();
  if (!outcome.isReady) exchange.problem("NOT_READY", outcome.detail, { reason: outcome.reason });
  else if (outcome.weaknesses.length === 0) exchange.json({ status: "ok" });
  else exchange.json({ status: "ok", degraded: outcome.weaknesses });
};

/** The document in bytes, made once for each configuration that is in use. */
const documents = new WeakMap<Live, Buffer>();

export const openapi: Handler<ServiceContext> = (exchange, { live, version }) => {
  let bytes = documents.get(live);
  if (bytes === undefined) {
    bytes = Buffer.from(JSON.stringify(openApiDocument({ version, header: live.config.settings.authHeader })));
    documents.set(live, bytes);
  }
  exchange.send(200, "application/json", bytes);
};

export const metrics: Handler<ServiceContext> = async (exchange, context) => {
  exchange.send(200, "text/plain; version=0.0.4; charset=utf-8", await scrape(context));
};
