/** `@slotkeeper/client/hono`: limits the requests of each tenant at a time, on Node, Bun, Deno and Workers. Hono 4. */
import type { Context, MiddlewareHandler } from "hono";
import { quietly } from "../timing.ts";
import { type Outcome, type PerTenantOptions, Refusal, tenantSlots } from "./tenant-slots.ts";

export type { KeyedGate, PerTenantOptions, SemaphoreGate } from "./tenant-slots.ts";

/** nginx's status for a caller that has disconnected. No caller gets it. */
const GONE = 499;

/**
 * Middleware that takes a slot of the caller's tenant and holds it until the response has ended, its body included. A
 * request that gets no slot in time is answered 429, or 503 if slots cannot be granted, with `Retry-After`.
 *
 * @example
 * import { SlotClient } from "@slotkeeper/client";
 * import { perTenant } from "@slotkeeper/client/hono";
 *
 * const keeper = new SlotClient({ url: "http://127.0.0.1:8080" });
 * app.use(perTenant({ gate: keeper, slots: 2, tenant: (context) => context.req.header("x-tenant") }));
 */
export function perTenant(options: PerTenantOptions<Context>): MiddlewareHandler {
  const take = tenantSlots(options);
  return async (context, next) => {
    const { signal } = context.req.raw;
    const outcome = await take(context, signal);
    if (outcome === "gone") return new Response(null, { status: GONE });
    if (outcome instanceof Refusal) return Response.json(outcome.body, outcome);
    if (outcome === undefined) return next();
    const release = releaseOnce(outcome, context);
    try {
      await next();
    } catch (error) {
      release();
      throw error;
    }
    const { body } = context.res;
    if (!body || signal.aborted) return release();
    // A server need not read the body to its end if its caller disconnects.
    signal.addEventListener("abort", release);
    context.res = new Response(withEnd(body, release), context.res);
  };
}

/** A Worker ends with its answer, unless it waits for the release. Other hosts have no such context. */
function releaseOnce(slot: Exclude<Outcome, Refusal | string | undefined>, context: Context): () => void {
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    const released = Promise.resolve(slot.release());
    quietly(() => context.executionCtx.waitUntil(released));
  };
}

/** The same bytes, as slowly as they are read. `onEnd` is called when they end, fail, or are no longer wanted. */
function withEnd(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    try {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(value);
      controller.close();
    } catch (error) {
      controller.error(error);
    }
    onEnd();
  };
  const cancel = (reason: unknown) => {
    onEnd();
    return reader.cancel(reason);
  };
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
}
