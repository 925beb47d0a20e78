// Fastify: limits the requests of each tenant at a time, over the whole fleet.
import type { SlotClient } from "@slotkeeper/client";
import type { onRequestAsyncHookHandler } from "fastify";

/** `app.addHook("onRequest", perTenant(keeper, 2))` */
export function perTenant(keeper: SlotClient, slots: number): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const gone = new AbortController();
    reply.raw.on("close", () => gone.abort());
    const tenant = keeper.semaphore(`tenant:${String(request.headers["x-tenant"] ?? "none")}`, slots);
    const slot = await tenant.acquire({ signal: gone.signal, timeoutMs: 5_000 }).catch((error: Error) => {
      throw Object.assign(error, { statusCode: 503 });
    });
    if (reply.raw.closed) await slot.release();
    else reply.raw.on("close", () => void slot.release());
  };
}
