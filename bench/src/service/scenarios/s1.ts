import { type ClientPlan, closedLoop } from "../load/closed-loop.ts";
import { percentile } from "../load/statistics.ts";
import { atLeastTimes, atMost, type LoadContext, type Metrics, type Scenario } from "../scenario.ts";

const SLOTS = 16;

export const s1: Scenario = {
  id: "S1",
  title: "64 closed-loop clients, 32 buckets, 16 slots, hold 0: acquire → granted → release",
  subjects: ["bare", "slotkeeper", "journal", "postgres", "postgres-unsynced", "seed", "seed-sql"],
  forComparison: ["postgres-unsynced", "seed", "seed-sql"],
  fairQueue: { maxSlotPerHost: SLOTS, maxSlotPerIp: -1, maxWaitersPerHost: 0 },
  load: (context) => loadOf(context),
  goals: [
    atLeastTimes("slotkeeper", "cycles/s", 0.6, "bare"),
    atLeastTimes("postgres", "cycles/s", 5, "seed-sql"),
    atMost("slotkeeper", "violations", 0),
    atMost("postgres", "violations", 0),
    atMost("journal", "violations", 0),
  ],
};

/** `demandOf`: what a client sends in addition. */
export async function loadOf(
  context: LoadContext,
  demandOf: (client: number) => Pick<ClientPlan, "demand" | "settled"> = () => ({}),
): Promise<Metrics> {
  const isBare = context.subject === "bare";
  const { audit, from, to, serverCpuMs } = await closedLoop(context, {
    host: "s1.example",
    clients: Array.from({ length: 64 }, (_, n) => ({ bucket: `b${n % 32}`, holdMs: 0, ...demandOf(n) })),
    limits: { slots: isBare ? Number.POSITIVE_INFINITY : SLOTS, slotsPerBucket: Number.POSITIVE_INFINITY },
    warmUpMs: 1000,
    warmUpCycles: context.isShort || context.subject.startsWith("seed") ? 0 : 10_000,
    measureMs: context.isShort ? 2000 : 5000,
  });
  const done = audit.holds.filter(({ endedAt }) => endedAt >= from && endedAt < to);
  return {
    "cycles/s": (done.length * 1000) / (to - from),
    "server CPU µs/cycle": (serverCpuMs * 1000) / done.length,
    "wait p99 ms": percentile(
      done.map(({ waitedMs }) => waitedMs),
      99,
    ),
    violations: audit.violations,
  };
}
