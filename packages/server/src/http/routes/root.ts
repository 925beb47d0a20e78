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

/** Says nothing that a stranger should not read. */
export const home: Handler = (exchange, { version }) => {
  exchange.send(200, "text/html; charset=utf-8", page(version), {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
  });
};

function page(version: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Slotkeeper</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}</style></head>
<body>
<h1>Slotkeeper ${version}</h1>
<p>The service is running. It decides who may run now: callers ask for a slot on a host and are queued fairly.</p>
<ul>
<li><a href="/readyz">/readyz</a>: whether it can grant</li>
<li><a href="/livez">/livez</a>: whether it runs</li>
<li><a href="/metrics">/metrics</a>: how it is doing, where no token guards it</li>
<li><a href="/openapi.json">/openapi.json</a>: how to call it</li>
</ul>
</body>
</html>
`;
}
