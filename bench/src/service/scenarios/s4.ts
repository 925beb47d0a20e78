import { slotTime, worstWindow } from "../load/audit.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { jain } from "../load/statistics.ts";
import { atLeast, atMost, type Scenario } from "../scenario.ts";

const SLOTS = 4;
const BUCKETS = ["long", "short1", "short2", "short3"];

export const s4: Scenario = {
  id: "S4",
  title: "four buckets of 8 sessions, one holds 1,000 ms, the others 50 ms, 4 slots, cap 4",
  subjects: ["slotkeeper", "seed"],
  forComparison: ["seed"],
  isLight: true,
  fairQueue: { maxSlotPerHost: SLOTS, maxSlotPerIp: SLOTS },
  async load(context) {
    const { audit, from, to } = await closedLoop(context, {
      host: "s4.example",
      clients: BUCKETS.flatMap((bucket) =>
        Array.from({ length: 8 }, () => ({ bucket, holdMs: bucket === "long" ? 1000 : 50 })),
      ),
      limits: { slots: SLOTS, slotsPerBucket: SLOTS },
      warmUpMs: 2000,
      measureMs: context.isShort ? 10_000 : 65_000,
    });
    const windowMs = context.isShort ? 5000 : 60_000;
    return {
      "Jain of slot-seconds": jain(slotTime(audit.holds, BUCKETS, from, to)),
      "worst window": worstWindow(audit.holds, BUCKETS, { from, to, windowMs }),
      violations: audit.violations,
    };
  },
  goals: [
    atLeast("slotkeeper", "Jain of slot-seconds", 0.99),
    atLeast("slotkeeper", "worst window", 0.95),
    atMost("slotkeeper", "violations", 0),
  ],
};
