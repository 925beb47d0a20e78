import { openApiDocument } from "@slotkeeper/protocol/schemas";
import type { Handler } from "../handler.ts";
import type { Live } from "../service-context.ts";

export const livez: Handler = (exchange) => exchange.json({ status: "ok" });

export const readyz: Handler = async (exchange, { readiness }) => {
  const outcome = await readiness.read();
  if (!outcome.isReady) exchange.problem("NOT_READY", outcome.detail, { reason: outcome.reason });
  else if (outcome.weaknesses.length === 0) exchange.json({ status: "ok" });
  else exchange.json({ status: "ok", degraded: outcome.weaknesses });
};

/** The document in bytes, made once for each configuration that is in use. */
const documents = new WeakMap<Live, Buffer>();

export const openapi: Handler = (exchange, { live, version }) => {
  let bytes = documents.get(live);
  if (bytes === undefined) {
    bytes = Buffer.from(JSON.stringify(openApiDocument({ version, header: live.config.settings.authHeader })));
    documents.set(live, bytes);
  }
  exchange.send(200, "application/json", bytes);
};
