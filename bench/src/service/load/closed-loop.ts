import { setTimeout as pause } from "node:timers/promises";
import type { LoadContext } from "../scenario.ts";
import { Audit } from "./audit.ts";
import { cpuMs } from "./server-usage.ts";
import { SlotClient } from "./slot-client.ts";

export interface ClientPlan {
  readonly bucket: string;
  readonly holdMs: number;
  /** More fields of its acquire, and of its release. */
  readonly demand?: object;
  readonly settled?: object;
}

export interface LoopPlan {
  readonly host: string;
  readonly clients: readonly ClientPlan[];
  readonly limits: { readonly slots: number; readonly slotsPerBucket: number };
  readonly warmUpMs: number;
  /**
   * Warming up continues until this number of cycles: new code is slow, and on a busy machine it stays slow for long.
   */
  readonly warmUpCycles?: number;
  readonly measureMs: number;
}

export interface LoopResult {
  readonly audit: Audit;
  readonly from: number;
  readonly to: number;
  readonly serverCpuMs: number;
}

/** Each client acquires, holds, releases and asks again, until the time is up. */
export async function closedLoop(context: LoadContext, plan: LoopPlan): Promise<LoopResult> {
  const audit = new Audit(plan.limits);
  const clients = await Promise.all(plan.clients.map(() => SlotClient.open(context.url, context.waiting)));
  let to = Number.POSITIVE_INFINITY;
  const isOver = () => performance.now() >= to;
  const loop = async (client: SlotClient, { bucket, holdMs, demand, settled }: ClientPlan) => {
    while (!isOver()) {
      const askedAt = performance.now();
      const slot = await client.acquire(plan.host, bucket, isOver, demand);
      if (slot === undefined) return;
      const hold = audit.granted(plan.host, bucket, slot.fence, performance.now() - askedAt);
      if (holdMs > 0) await holdFor(holdMs);
      audit.releasing(hold);
      await client.release(slot.slotToken, settled);
    }
  };
  const running = clients.map((client, at) => loop(client, plan.clients[at] as ClientPlan).catch(() => {}));
  await pause(plan.warmUpMs);
  while (audit.holds.length < (plan.warmUpCycles ?? 0)) await pause(100);
  const from = performance.now();
  to = from + plan.measureMs;
  const cpuBefore = cpuMs(context.serverPid);
  await pause(plan.measureMs);
  const serverCpuMs = cpuMs(context.serverPid) - cpuBefore;
  // Ends the calls that the server still holds.
  for (const client of clients) client.close();
  await Promise.all(running);
  return { audit, from, to, serverCpuMs };
}

/** A timer fires up to a millisecond late, which would distort short holds. So the last millisecond is a busy wait. */
async function holdFor(ms: number): Promise<void> {
  const end = performance.now() + ms;
  await new Promise((resolve) => setTimeout(resolve, ms - 2));
  while (performance.now() < end) await new Promise((resolve) => setImmediate(resolve));
}
