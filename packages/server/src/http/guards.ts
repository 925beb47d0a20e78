import type { IncomingMessage } from "node:http";
import type { Audience } from "@slotkeeper/protocol/schemas";
import type { Settings } from "../config/settings.ts";
import { SecretSet } from "../tokens/secret-compare.ts";
import { isOwnOrigin } from "./cors.ts";
import { isLoopback } from "./loopback.ts";

/** Decides which callers may use which routes, for one configuration. */
export class Guards {
  readonly #header: string;
  readonly #shared: SecretSet | undefined;
  readonly #internal: SecretSet | undefined;

  constructor({ auth, authHeader, internalApiToken }: Settings) {
    this.#header = authHeader.toLowerCase();
    this.#shared = auth === undefined ? undefined : new SecretSet(auth.keys);
    this.#internal = internalApiToken === undefined ? undefined : new SecretSet([internalApiToken]);
  }

  /** `isBoundToLoopback` is true if only this machine can reach the listener. */
  admits(audience: Audience, request: IncomingMessage, isBoundToLoopback: boolean): boolean {
    switch (audience) {
      case "public":
        return true;
      case "caller":
        return this.#shared === undefined || this.#shared.has(headerOf(request, this.#header));
      case "internal":
        return this.#hasBearer(request);
      case "operator":
        if (this.#internal !== undefined) return this.#hasBearer(request);
        return isBoundToLoopback && isOnThisMachine(request);
      case "scraper":
        return this.#internal === undefined || this.#hasBearer(request);
    }
  }

  #hasBearer(request: IncomingMessage): boolean {
    const [, token] = /^Bearer +(\S+) *$/i.exec(headerOf(request, "authorization")) ?? [];
    return this.#internal !== undefined && token !== undefined && this.#internal.has(token);
  }
}

function headerOf({ headers }: IncomingMessage, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : "";
}

/** Headers that proxies add. */
const OF_A_PROXY = /^(?:forwarded|x-forwarded-.*|via|x-real-ip|cf-.*)$/;

/**
 * Whether the caller is a person on this machine. It is not a caller behind a proxy on this machine, and not a browser
 * that a page of another site has sent here, under its own name or under ours.
 */
function isOnThisMachine({ socket, headers }: IncomingMessage): boolean {
  const { host = "", origin } = headers;
  if (!isLoopback(socket.remoteAddress ?? "")) return false;
  if (!/^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/i.test(host)) return false;
  if (origin !== undefined && !isOwnOrigin(origin, host)) return false;
  return !Object.keys(headers).some((name) => OF_A_PROXY.test(name));
}
