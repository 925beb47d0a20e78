import type { CleanupReply, CleanupRequest } from "@slotkeeper/queue";
import type { SlotDatabase } from "./slot-database.ts";

/** Hosts are locked for as long as a statement takes: a few at a time keeps that to milliseconds. */
const HOSTS_AT_A_TIME = 20;

/** How long a host without users is remembered. */
const IDLE_MS = 90_000;

interface SweepReply {
  readonly slots: number;
  readonly waiters: number;
  readonly sessions: number;
  readonly reclaimed: number;
  /** The last host it looked at; null when there was none left. */
  readonly last: string | null;
}

/** Takes away what time has ended. Each step runs even if another failed; what failed is in the reply. */
export async function sweep(database: SlotDatabase, request: CleanupRequest): Promise<CleanupReply> {
  const failures: unknown[] = [];
  const step = async <T>(run: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await run();
    } catch (error) {
      failures.push(error);
      return undefined;
    }
  };
  const cooldowns = await step(() => database.call("slotkeeper_sweep_cooldowns", {}));
  const counted = await step(() => database.call("slotkeeper_sweep_depth", { p_ttl_ms: request.waiterTtlMs }));
  const totals = { slots: 0, waiters: Number(counted ?? 0), sessions: 0, reclaimed: 0 };
  await step(() => sweepHosts(database, request, totals));
  return { ...totals, cooldowns: Number(cooldowns ?? 0), failures };
}

async function sweepHosts(
  database: SlotDatabase,
  { resetSmoothing = false }: CleanupRequest,
  totals: { slots: number; waiters: number; sessions: number; reclaimed: number },
): Promise<void> {
  const given = { p_count: HOSTS_AT_A_TIME, p_idle_ms: IDLE_MS, p_reset_smoothing: resetSmoothing };
  for (let after: string | null = ""; after !== null; ) {
    const reply = (await database.call("slotkeeper_sweep", { p_after: after, ...given })) as SweepReply;
    totals.slots += reply.slots;
    totals.waiters += reply.waiters;
    totals.sessions += reply.sessions;
    totals.reclaimed += reply.reclaimed;
    after = reply.last;
  }
}
