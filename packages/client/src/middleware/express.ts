/** `@slotkeeper/client/express`: limits the requests of each tenant at a time. Express 4 and 5. */
import type { Request, RequestHandler } from "express";
import { takeUntilClosed } from "./node-response.ts";
import { type PerTenantOptions, Refusal, tenantSlots } from "./tenant-slots.ts";

export type { KeyedGate, PerTenantOptions, SemaphoreGate } from "./tenant-slots.ts";

/**
 * Middleware that takes a slot of the caller's tenant and holds it until the response has ended. A request that gets no
 * slot in time is answered 429, or 503 if slots cannot be granted, with `Retry-After`.
 *
 * @example
 * import { SlotClient } from "@slotkeeper/client";
 * import { perTenant } from "@slotkeeper/client/express";
 *
 * const keeper = new SlotClient({ url: "http://127.0.0.1:8080" });
 * app.use(perTenant({ gate: keeper, slots: 2, tenant: (request) => request.get("x-tenant") }));
 */
export function perTenant(options: PerTenantOptions<Request>): RequestHandler {
  const take = tenantSlots(options);
  return async (request, response, next) => {
    try {
      const outcome = await takeUntilClosed(take, request, response);
      if (outcome instanceof Refusal) response.status(outcome.status).set(outcome.headers).json(outcome.body);
      else if (outcome !== "gone") next();
    } catch (error) {
      // Express 4 does not catch the rejection of a handler.
      next(error);
    }
  };
}
