import type { IncomingMessage } from "node:http";
import { ApiError } from "./api-error.ts";

/** One call of a function, as the HTTP request has it. */
export interface RpcRequest {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  /** Named arguments. */
  readonly given: { readonly [name: string]: unknown };
  /** The schema of the profile header. */
  readonly profile: string | undefined;
  /**
   * Resource Representation: "To return the first result as an object unenclosed by an array, specify
   * vnd.pgrst.object".
   */
  readonly isSingular: boolean;
}

/** Throws an `ApiError` if the request is not a call of a function. */
export function parseRequest(incoming: IncomingMessage, body: string): RpcRequest {
  const { method = "GET", headers } = incoming;
  const url = new URL(incoming.url ?? "/", "http://localhost");
  // Functions as RPC: "Every function in the exposed schema and accessible by the active database role is executable
  // under the /rpc prefix."
  const name = /^\/rpc\/([^/]+)$/.exec(url.pathname)?.[1];
  if (name === undefined) {
    // PGRST205 (404): "Caused when the table specified in the URI is not found." The stand-in has no tables.
    throw new ApiError(404, "PGRST205", `Could not find the table '${url.pathname.slice(1)}' in the schema cache`);
  }
  const isRead = method === "GET" || method === "HEAD";
  // PGRST101 (405): "For functions, only GET and POST verbs are allowed. Any other verb will throw this error."
  if (!isRead && method !== "POST") throw new ApiError(405, "PGRST101", `Cannot use the ${method} method on RPC`);
  return {
    name: decodeURIComponent(name),
    method,
    path: url.pathname,
    headers,
    given: isRead ? queryOf(url) : argumentsOf(headers, body),
    // Schemas: "For GET or HEAD, select the schema with Accept-Profile." and "For POST, PATCH, PUT and DELETE, select
    // the schema with Content-Profile."
    profile: headerOf(headers[isRead ? "accept-profile" : "content-profile"]),
    isSingular: headers.accept?.includes("application/vnd.pgrst.object") === true,
  };
}

/** Functions as RPC, Calling with GET: "for the GET case they match the query parameters ?a=1&b=2". */
function queryOf(url: URL): RpcRequest["given"] {
  return Object.fromEntries(url.searchParams);
}

/**
 * Functions as RPC, Calling with POST: "To supply arguments in an API call, include a JSON object in the request
 * payload."
 */
function argumentsOf(headers: IncomingMessage["headers"], body: string): RpcRequest["given"] {
  const type = headers["content-type"] ?? "application/json";
  // PGRST107 (415): "The Content-Type sent in the request is invalid." The stand-in takes JSON only.
  if (!/^application\/json\b/.test(type)) throw new ApiError(415, "PGRST107", `Content-Type not acceptable: ${type}`);
  // PGRST102 (400): "An invalid request body was sent(e.g. an empty body or malformed JSON)."
  const invalid = new ApiError(400, "PGRST102", "Empty or invalid json");
  try {
    const given: unknown = JSON.parse(body);
    if (typeof given !== "object" || given === null || Array.isArray(given)) throw invalid;
    return given as RpcRequest["given"];
  } catch {
    throw invalid;
  }
}

function headerOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
