import type { IncomingMessage } from "node:http";
import type { Audience } from "@slotkeeper/protocol/schemas";
import type { Settings } from "../config/settings.ts";
import { SecretSet } from "../tokens/secret-compare.ts";

/** Who may call what, for one configuration. */
export class Guards {
  readonly #header: string;
  readonly #shared: SecretSet | undefined;
  readonly #internal: SecretSet | undefined;

  constructor({ auth, authHeader, internalApiToken }: Settings) {
    this.#header = authHeader.toLowerCase();
    this.#shared = auth === undefined ? undefined : new SecretSet(auth.keys);
    this.#internal = internalApiToken === undefined ? undefined : new SecretSet([internalApiToken]);
  }

  admits(audience: Audience, request: IncomingMessage): boolean {
    switch (audience) {
      case "public":
        return true;
      case "caller":
        return this.#shared === undefined || this.#shared.has(headerOf(request, this.#header));
      case "internal":
        return this.#hasBearer(request);
      case "operator":
        return this.#internal === undefined ? isOnThisMachine(request) : this.#hasBearer(request);
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

/**
 * A person at this machine, and nobody a proxy on this machine speaks for; nor a browser that a page elsewhere has sent
 * here, be it under a name of its own or under ours.
 */
function isOnThisMachine({ socket, headers }: IncomingMessage): boolean {
  const peer = (socket.remoteAddress ?? "").replace(/^::ffff:/, "");
  if (peer !== "::1" && !peer.startsWith("127.")) return false;
  if (!/^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/i.test(headers.host ?? "")) return false;
  if (headers.origin !== undefined && headers.origin.replace(/^https?:\/\//, "") !== headers.host) return false;
  return !Object.keys(headers).some((name) => name === "forwarded" || name.startsWith("x-forwarded-"));
}
