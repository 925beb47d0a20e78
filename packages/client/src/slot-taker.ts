/** Waits for a slot and creates the slot object, with the spans around both and the counts. */
import { failurePolicy } from "./failure-policy.ts";
import { namedHost } from "./host-name.ts";
import type { ResolvedOptions } from "./options.ts";
import { heldSlot, type ServiceSlot } from "./slot.ts";
import { type Asked, waitForSlot } from "./slot-wait.ts";
import { endSpan } from "./telemetry.ts";
import { quietly } from "./timing.ts";
import { transport } from "./transport.ts";

/** `mayHash` is false for a semaphore, because the service knows it only by its name. */
export type Take = (asked: Asked, mayHash?: boolean) => Promise<ServiceSlot>;

export function slotTaker(options: ResolvedOptions, stats: { held: number; unguarded: number }): Take {
  const policy = failurePolicy(options.onFailure, stats);
  return async (asked, mayHash) => {
    const { hostname, bucket = "", signal, held, waitUntil = options.waitUntil, maxWaitMs = options.maxWaitMs } = asked;
    signal?.throwIfAborted();
    const start = (name: "wait" | "hold") => quietly(() => options.telemetry?.start(name, { hostname, bucket }));
    const waited = start("wait");
    try {
      const named = await namedHost(hostname, mayHash && options.hashHostname);
      const ask = { ...asked, waitUntil, maxWaitMs, named };
      const result = await waitForSlot(options, transport(options, waited?.traceparent), policy, ask);
      const isPass = typeof result === "function";
      endSpan(waited, isPass ? "unguarded" : "granted");
      const span = start("hold");
      const parts = { call: transport(options, span?.traceparent), named, hostname, waitUntil, span };
      if (isPass) return heldSlot({ ...parts, onEnd: result });
      const { slotToken, fence, limit } = result;
      policy.learn(hostname, limit);
      stats.held++;
      const onEnd = () => {
        stats.held--;
        held?.delete(slotToken);
      };
      const slot = heldSlot({ ...parts, onEnd }, slotToken, fence, result);
      held?.set(slotToken, slot);
      return slot;
    } catch (error) {
      endSpan(waited, undefined, error);
      throw error;
    }
  };
}
