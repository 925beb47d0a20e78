import { slotTime } from "../load/audit.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { jain, percentile } from "../load/statistics.ts";
import { atLeast, atMost, type Scenario } from "../scenario.ts";

const SLOTS = 4;
const HOLD_MS = 200;
const SMALL = Array.from({ length: 20 }, (_, n) => `small${n}`);
const BUCKETS = ["greedy", ...SMALL];
const IDEAL_WAIT_MS = (BUCKETS.length / SLOTS - 1) * HOLD_MS;

export const s3: Scenario = {
  id: "S3",
  title:
    "one greedy bucket (150 sessions) against 20 of one session each, 4 slots, cap 4, hold 200 ms, default waiter caps",
  subjects: ["slotkeeper", "seed"],
  forComparison: ["seed"],
  isLight: true,
  fairQueue: { maxSlotPerHost: SLOTS, maxSlotPerIp: SLOTS },
  async load(context) {
    const greedy = Array.from({ length: 150 }, () => ({ bucket: "greedy", holdMs: HOLD_MS }));
    const { audit, from, to } = await closedLoop(context, {
      host: "s3.example",
      clients: [...greedy, ...SMALL.map((bucket) => ({ bucket, holdMs: HOLD_MS }))],
      limits: { slots: SLOTS, slotsPerBucket: SLOTS },
      warmUpMs: 1000,
      measureMs: context.isShort ? 8000 : 30_000,
    });
    const small = audit.holds.filter(({ grantedAt, bucket }) => grantedAt >= from && bucket !== "greedy");
    return {
      "Jain of slot-seconds": jain(slotTime(audit.holds, BUCKETS, from, to)),
      "small p95 wait ÷ ideal":
        percentile(
          small.map(({ waitedMs }) => waitedMs),
          95,
        ) / IDEAL_WAIT_MS,
      violations: audit.violations,
    };
  },
  goals: [
    atLeast("slotkeeper", "Jain of slot-seconds", 0.98),
    atMost("slotkeeper", "small p95 wait ÷ ideal", 1.5),
    atMost("slotkeeper", "violations", 0),
  ],
};
