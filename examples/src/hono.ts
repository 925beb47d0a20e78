// Hono: limits the requests of each tenant at a time, over the whole fleet. The same on Node, Bun, Deno and Workers.
import type { SlotClient } from "@slotkeeper/client";
import { createMiddleware } from "hono/factory";
import { HTTPException } from "hono/http-exception";

export function perTenant(keeper: SlotClient, slots: number) {
  return createMiddleware(async (context, next) => {
    const tenant = keeper.semaphore(`tenant:${context.req.header("x-tenant") ?? "none"}`, slots);
    const { signal } = context.req.raw;
    const slot = await tenant.acquire({ signal, timeoutMs: 5_000 }).catch((cause: Error) => {
      throw new HTTPException(503, { message: cause.message, cause });
    });
    try {
      await next();
    } finally {
      await slot.release();
    }
  });
}
