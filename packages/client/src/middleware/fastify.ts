/** `@slotkeeper/client/fastify`: limits the requests of each tenant at a time. Fastify 4 and 5. */
import type { FastifyRequest, onRequestAsyncHookHandler } from "fastify";
import { takeUntilClosed } from "./node-response.ts";
import { type PerTenantOptions, Refusal, tenantSlots } from "./tenant-slots.ts";

export type { KeyedGate, PerTenantOptions, SemaphoreGate } from "./tenant-slots.ts";

/**
 * A hook that takes a slot of the caller's tenant and holds it until the response has ended. A request that gets no slot
 * in time is answered 429, or 503 if slots cannot be granted, with `Retry-After`.
 *
 * @example
 * import { SlotClient } from "@slotkeeper/client";
 * import { perTenant } from "@slotkeeper/client/fastify";
 *
 * const keeper = new SlotClient({ url: "http://127.0.0.1:8080" });
 * app.addHook("onRequest", perTenant({ gate: keeper, slots: 2, tenant: ({ headers }) => headers["x-tenant"]?.toString() }));
 */
export function perTenant(options: PerTenantOptions<FastifyRequest>): onRequestAsyncHookHandler {
  const take = tenantSlots(options);
  return async (request, reply) => {
    const outcome = await takeUntilClosed(take, request, reply.raw);
    if (outcome === "gone") return reply.hijack();
    if (!(outcome instanceof Refusal)) return undefined;
    return reply.code(outcome.status).headers(outcome.headers).send(outcome.body);
  };
}
