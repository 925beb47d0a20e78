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
  readonly #scraper: SecretSet | undefined;

  constructor({ auth, authHeader, internalApiToken, metricsToken }: Settings) {
    this.#header = authHeader.toLowerCase();
    this.#shared = auth === undefined ? undefined : new SecretSet(auth.keys);
    this.#internal = setOf(internalApiToken);
    this.#scraper = setOf(metricsToken, internalApiToken);
  }

  /** `isBoundToLoopback` is true if only this machine can reach the listener. */
  admits(audience: Audience, request: IncomingMessage, isBoundToLoopback: boolean): boolean {
    switch (audience) {
      case "public":
        return true;
      case "caller":
        return this.#shared === undefined || this.#shared.has(headerOf(request, this.#header));
      case "internal":
        return hasBearer(request, this.#internal);
      case "operator":
        return admitsLocally(this.#internal, request, isBoundToLoopback);
      case "scraper":
        return admitsLocally(this.#scraper, request, isBoundToLoopback);
    }
  }
}

/** `undefined` if none of the secrets is set. */
function setOf(...secrets: (string | undefined)[]): SecretSet | undefined {
  const set = secrets.filter((secret) => secret !== undefined);
  return set.length === 0 ? undefined : new SecretSet(set);
}

/** The bearer decides; if none is set, callers on this machine are admitted. */
function admitsLocally(bearers: SecretSet | undefined, request: IncomingMessage, isBoundToLoopback: boolean): boolean {
  if (bearers !== undefined) return hasBearer(request, bearers);
  return isBoundToLoopback && isOnThisMachine(request);
}

function hasBearer(request: IncomingMessage, bearers: SecretSet | undefined): boolean {
  const [, token] = /^Bearer +(\S+) *$/i.exec(headerOf(request, "authorization")) ?? [];
  return bearers !== undefined && token !== undefined && bearers.has(token);
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
