import { openApiDocument } from "@slotkeeper/protocol/schemas";
import type { Handler } from "../handler.ts";

export const livez: Handler = (exchange) => exchange.json({ status: "ok" });

export const readyz: Handler = async (exchange, { held, opened }) => {
  if (held.isDraining) exchange.problem("NOT_READY", "The service is stopping");
  else if (await opened.isReady()) exchange.json({ status: "ok" });
  else exchange.problem("NOT_READY", "The store does not answer");
};

export const openapi: Handler = (exchange, { live, version }) => {
  exchange.json(openApiDocument({ version, header: live.config.settings.authHeader }));
};
