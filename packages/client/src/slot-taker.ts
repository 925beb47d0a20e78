/** Waits for a slot, and makes a slot of what the wait gave; with the spans around both, and the counts. */
import { failurePolicy } from "./failure-policy.ts";
import { namedHost } from "./host-name.ts";
import type { ResolvedOptions, WaitUntil } from "./options.ts";
import { heldSlot, type ServiceSlot } from "./slot.ts";
import { type Ask, waitForSlot } from "./slot-wait.ts";
import { endSpan } from "./telemetry.ts";
import { quietly } from "./timing.ts";
import { transport } from "./transport.ts";

type Asked = Omit<Ask, "named" | "traceparent" | "waitUntil"> & { readonly waitUntil?: WaitUntil | undefined };

export type Take = (asked: Asked, isHashed?: boolean) => Promise<ServiceSlot>;

export function slotTaker(options: ResolvedOptions, stats: { held: number; unguarded: number }): Take {
  const { telemetry, perRequestTimeoutMs: timeoutMs } = options;
  const call = transport(options);
  const policy = failurePolicy(options.onFailure, () => stats.unguarded++);
  return async (asked, isHashed) => {
    const { hostname, bucket = "", signal, held, waitUntil = options.waitUntil } = asked;
    signal?.throwIfAborted();
    const start = (name: "wait" | "hold") => quietly(() => telemetry?.start(name, { hostname, bucket }));
    const waited = start("wait");
    try {
      const named = await namedHost(hostname, isHashed);
      const ask = { ...asked, waitUntil, named, traceparent: waited?.traceparent };
      const result = await waitForSlot(options, call, policy, ask);
      const isPass = typeof result === "function";
      endSpan(waited, isPass ? "unguarded" : "granted");
      const parts = { call, timeoutMs, named, hostname, waitUntil, span: start("hold") };
      if (isPass) return heldSlot({ ...parts, onEnd: result });
      const { slotToken, fence, leaseMs, limit } = result;
      policy.learn(hostname, limit);
      stats.held++;
      const onEnd = () => {
        stats.held--;
        held?.delete(slotToken);
      };
      const slot = heldSlot({ ...parts, onEnd }, slotToken, fence, leaseMs);
      held?.set(slotToken, slot);
      return slot;
    } catch (error) {
      endSpan(waited, undefined, error);
      throw error;
    }
  };
}
