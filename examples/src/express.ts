// Express: limits the requests of each tenant at a time, over the whole fleet.
import type { SlotClient } from "@slotkeeper/client";
import type { RequestHandler } from "express";

export function perTenant(keeper: SlotClient, slots: number): RequestHandler {
  return async (request, response, next) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const tenant = keeper.semaphore(`tenant:${request.get("x-tenant") ?? "none"}`, slots);
    try {
      const slot = await tenant.acquire({ signal: gone.signal, timeoutMs: 5_000 });
      if (response.closed) await slot.release();
      else response.on("close", () => void slot.release());
      next();
    } catch (error) {
      if (!gone.signal.aborted) response.status(503).json({ error: (error as Error).message });
    }
  };
}
