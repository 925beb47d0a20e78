import { NODE_DIGESTS } from "@slotkeeper/server/node-crypto";
import { Access } from "@slotkeeper/server/portable";
import { FetchExchange } from "./fetch-exchange.ts";
import { type Placement, route, SlotObjects } from "./slot-router.ts";
import type { SlotNamespace } from "./workers.ts";

const HEADER = "X-FQ-Auth";

/**
 * A `fetch` for `SlotClient` that calls the objects of a binding. Code with the binding may do everything, so no key is
 * needed. The host in the `url` of the client does not matter.
 *
 * @example
 * ```ts
 * import { SlotClient } from "@slotkeeper/client";
 * import { type SlotNamespace, slotFetch } from "@slotkeeper/cloudflare";
 *
 * export const keeperOf = (slots: SlotNamespace) => new SlotClient({ url: "http://slots", fetch: slotFetch(slots) });
 * ```
 */
export function slotFetch(namespace: SlotNamespace, placement: Placement = {}): typeof fetch {
  const objects = new SlotObjects(checkedNamespace(namespace), placement);
  const access = accessOf({});
  return async (input, init) => {
    const request = new Request(input, init);
    const response = await route(new FetchExchange(request, true), "everything", access, objects);
    request.signal.throwIfAborted();
    return response;
  };
}

/** Options of `serve`. */
export interface ServeOptions extends Placement {
  /** The shared key of callers, or several of which each is valid. Without it, the routes of callers are not served. */
  readonly auth?: string | readonly string[] | undefined;
  /** The header of the shared key. Default: `X-FQ-Auth`. */
  readonly authHeader?: string | undefined;
  /** The bearer of operators. Without it, their routes are not served. */
  readonly internalToken?: string | undefined;
  /** Origins of web pages that may call. Default: none. */
  readonly corsOrigins?: readonly string[] | undefined;
}

/**
 * Serves the HTTP API to callers outside the Worker: the routes of callers with the shared key, those of operators with the
 * bearer. Any other path is answered with 404.
 *
 * @throws {TypeError} if there is neither `auth` nor `internalToken`, or one of them is empty.
 * @example
 * ```ts
 * import { type SlotNamespace, serve } from "@slotkeeper/cloudflare";
 *
 * export default {
 *   fetch: (request: Request, env: { SLOTS: SlotNamespace; KEY: string }) => serve(request, env.SLOTS, { auth: env.KEY }),
 * };
 * ```
 */
export async function serve(request: Request, namespace: SlotNamespace, options: ServeOptions): Promise<Response> {
  const { auth, internalToken } = options;
  const keys = auth === undefined ? undefined : [auth].flat();
  if (keys === undefined && internalToken === undefined)
    throw new TypeError("Expected `auth` or `internalToken`, got neither: anyone on the internet could take slots");
  for (const [name, secrets] of [
    ["auth", keys ?? ["-"]] as const,
    ["internalToken", [internalToken ?? "-"]] as const,
  ]) {
    if (secrets.length === 0 || secrets.some((secret) => typeof secret !== "string" || secret === ""))
      throw new TypeError(`Expected \`${name}\` to be a non-empty text`);
  }
  const objects = new SlotObjects(checkedNamespace(namespace), options);
  const routes = keys === undefined ? "operators" : "everything";
  return route(new FetchExchange(request, false), routes, accessOf(options), objects);
}

function accessOf({ auth, authHeader = HEADER, internalToken, corsOrigins = [] }: ServeOptions): Access {
  const keys = auth === undefined ? undefined : { keys: [auth].flat() };
  const settings = { authHeader, internalApiToken: internalToken, metricsToken: undefined, corsOrigins };
  return new Access({ ...settings, auth: keys } as ConstructorParameters<typeof Access>[0], NODE_DIGESTS);
}

function checkedNamespace(namespace: SlotNamespace): SlotNamespace {
  if (typeof (namespace as SlotNamespace | undefined)?.idFromName === "function") return namespace;
  throw new TypeError(
    `Expected a binding of a Durable Object class, got ${String(namespace)}. Is it in wrangler.jsonc?`,
  );
}
