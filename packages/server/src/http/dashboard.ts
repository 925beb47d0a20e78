import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServiceContext } from "./context.ts";
import type { Handler } from "./dispatch.ts";
import type { Exchange } from "./exchange.ts";

/** The output folder of the build of `packages/dashboard`. The path is the same from `src` and from `dist`. */
const BUILT = fileURLToPath(new URL("../../../dist/dashboard", import.meta.url));

const TYPES: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

type Encoding = "br" | "gzip" | "identity";

export interface DashboardFile {
  readonly type: string;
  /** The hash of the content before any encoding. */
  readonly hash: string;
  readonly bodies: { readonly [encoding in Encoding]?: Buffer };
}

/**
 * The files of the dashboard, in memory. They are read at the first request. Only files that exist then can be
 * requested, by their exact names, so no path leads out of the folder.
 */
export class DashboardFiles {
  readonly #folder: string;
  #files: ReadonlyMap<string, DashboardFile> | undefined;

  constructor(folder: string = BUILT) {
    this.#folder = folder;
  }

  /** `undefined` if the dashboard was not built. */
  get page(): DashboardFile | undefined {
    return this.#all().get("index.html");
  }

  /** A file whose name contains the hash of its content. */
  asset(name: string): DashboardFile | undefined {
    return this.#all().get(`assets/${name}`);
  }

  #all(): ReadonlyMap<string, DashboardFile> {
    this.#files ??= readBuild(this.#folder);
    return this.#files;
  }
}

function readBuild(folder: string): ReadonlyMap<string, DashboardFile> {
  const names = ["", "assets/"].flatMap((prefix) => {
    const directory = join(folder, prefix);
    return existsSync(directory) ? readdirSync(directory).map((name) => `${prefix}${name}`) : [];
  });
  const served = names.filter((name) => extname(name) in TYPES);
  return new Map(served.map((name) => [name, readFile(join(folder, name))]));
}

function readFile(path: string): DashboardFile {
  const identity = readFileSync(path);
  const packed = (extension: string) => (existsSync(path + extension) ? readFileSync(path + extension) : undefined);
  const [br, gzip] = [packed(".br"), packed(".gz")];
  return {
    type: TYPES[extname(path)] as string,
    hash: createHash("sha256").update(identity).digest("base64url").slice(0, 22),
    bodies: { identity, ...(br === undefined ? {} : { br }), ...(gzip === undefined ? {} : { gzip }) },
  };
}

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
export const home: Handler<ServiceContext> = (exchange, { dashboard, version }) => {
  const { page } = dashboard;
  if (page === undefined) exchange.send(200, "text/html; charset=utf-8", notBuiltPage(version), PROTECTION);
  else sendFile(exchange, page, ASK_AGAIN);
};

export const asset: Handler<ServiceContext> = (exchange, { dashboard }) => {
  const file = dashboard.asset(exchange.path.slice("/assets/".length));
  if (file === undefined) exchange.problem("NOT_FOUND");
  else sendFile(exchange, file, KEEP);
};

function sendFile(exchange: Exchange, file: DashboardFile, caching: string): void {
  const encoding = encodingFor(exchange.header("accept-encoding"), file);
  const tag = `"${file.hash}-${encoding}"`;
  const headers = { ...PROTECTION, "Cache-Control": caching, ETag: tag, Vary: "Accept-Encoding" };
  if (isKnown(exchange.header("if-none-match"), tag)) return exchange.empty(304, headers);
  const packed = encoding === "identity" ? {} : { "Content-Encoding": encoding };
  exchange.send(200, file.type, file.bodies[encoding] as Buffer, { ...headers, ...packed });
}

/** The smallest encoding that the caller accepts. `q=0` refuses an encoding. */
function encodingFor(accepted = "", { bodies }: DashboardFile): Encoding {
  const taken = new Set(
    accepted
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

/** What `/` shows when the service runs from sources that were never built. Without style: the policy allows none here. */
function notBuiltPage(version: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Slotkeeper</title></head>
<body>
<h1>Slotkeeper ${version}</h1>
<p>The service is running, but its dashboard has not been built. Run <code>npm run build</code> and restart the service.</p>
<ul>
<li><a href="/readyz">/readyz</a>: whether the service can grant slots</li>
<li><a href="/livez">/livez</a>: whether the process runs</li>
<li><a href="/metrics">/metrics</a>: metrics, with a bearer token or, if none is set, from this machine</li>
<li><a href="/openapi.json">/openapi.json</a>: the HTTP contract</li>
</ul>
</body>
</html>
`;
}
