import type { Exchange } from "../exchange.ts";
import type { Handler } from "../handler.ts";
import type { DashboardFile, Encoding } from "./dashboard-files.ts";
import { notBuiltPage } from "./not-built-page.ts";

/** No inline scripts or styles, nothing from other sites, no frames, and no strings that become markup. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const PROTECTION = {
  "Content-Security-Policy": POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

/** The browser asks for the page each time, and gets 304 if it has not changed. */
const ASK_AGAIN = "no-cache";
/** The name of an asset changes with its content. */
const KEEP = "public, max-age=31536000, immutable";

/** The static page. It contains no data, so anyone may read it. */
export const home: Handler = (exchange, { dashboard, version }) => {
  const { page } = dashboard;
  if (page === undefined) exchange.send(200, "text/html; charset=utf-8", notBuiltPage(version), PROTECTION);
  else sendFile(exchange, page, ASK_AGAIN);
};

export const asset: Handler = (exchange, { dashboard }) => {
  const file = dashboard.asset(exchange.path.slice("/assets/".length));
  if (file === undefined) exchange.problem("NOT_FOUND");
  else sendFile(exchange, file, KEEP);
};

function sendFile({ request, response, id }: Exchange, file: DashboardFile, caching: string): void {
  const encoding = encodingFor(request.headers["accept-encoding"], file);
  const tag = `"${file.hash}-${encoding}"`;
  const body = file.bodies[encoding] as Buffer;
  const headers = { ...PROTECTION, "Cache-Control": caching, ETag: tag, Vary: "Accept-Encoding", "X-Request-Id": id };
  if (isKnown(request.headers["if-none-match"], tag)) {
    response.writeHead(304, headers).end();
    return;
  }
  response.writeHead(200, {
    ...headers,
    "Content-Type": file.type,
    "Content-Length": body.length,
    ...(encoding === "identity" ? {} : { "Content-Encoding": encoding }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

/** The smallest encoding that the caller accepts. `q=0` refuses an encoding. */
function encodingFor(accepted: string | string[] | undefined, { bodies }: DashboardFile): Encoding {
  const taken = new Set(
    String(accepted ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => part.trim().split(/\s*;\s*q=/))
      .filter(([, weight = "1"]) => Number(weight) > 0)
      .map(([name = ""]) => name),
  );
  return (["br", "gzip"] as const).find((name) => taken.has(name) && bodies[name] !== undefined) ?? "identity";
}

/** A proxy may have made the tag weak. */
function isKnown(sent: string | undefined, tag: string): boolean {
  return (sent ?? "").split(",").some((part) => [tag, "*"].includes(part.trim().replace(/^W\//, "")));
}
