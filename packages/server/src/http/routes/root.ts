import { openApiDocument } from "@slotkeeper/protocol/schemas";
import type { Handler } from "../handler.ts";

export const livez: Handler = (exchange) => exchange.json({ status: "ok" });

export const readyz: Handler = async (exchange, { readiness }) => {
  const outcome = await readiness.read();
  if (!outcome.isReady) exchange.problem("NOT_READY", outcome.detail, { reason: outcome.reason });
  else if (outcome.weaknesses.length === 0) exchange.json({ status: "ok" });
  else exchange.json({ status: "ok", degraded: outcome.weaknesses });
};

export const openapi: Handler = (exchange, { live, version }) => {
  exchange.json(openApiDocument({ version, header: live.config.settings.authHeader }));
};
