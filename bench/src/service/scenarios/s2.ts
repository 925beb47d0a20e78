import { idleP99, utilisation } from "../load/audit.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { jain, percentile } from "../load/statistics.ts";
import { atLeast, atMost, type Goal, type Scenario, type SubjectId } from "../scenario.ts";

const SLOTS = 4;
const HOLD_MS = 100;
const BUCKETS = 50;
const SESSIONS = 200;
const IDEAL_WAIT_MS = (SESSIONS / SLOTS - 1) * HOLD_MS;

const goalsOf = (subject: SubjectId, leastUtilisation: number): Goal[] => [
  atLeast(subject, "utilisation", leastUtilisation),
  atMost(subject, "wait p99 ÷ ideal", 1.2),
  atLeast(subject, "Jain of grants", 0.99),
  atMost(subject, "idle p99 ms", 15),
  atMost(subject, "violations", 0),
];

/** The weighted scheduler's thresholds are set so that the host counts as hot. */
export const s2: Scenario = {
  id: "S2",
  title: "hot host: 200 closed-loop sessions, 50 buckets, 4 slots, one per bucket, hold 100 ms, waiter caps off",
  subjects: ["slotkeeper", "weighted", "postgres", "postgres-weighted", "seed", "seed-sql"],
  forComparison: ["seed", "seed-sql"],
  fairQueue: { maxSlotPerHost: SLOTS, maxSlotPerIp: 1, maxWaitersPerHost: 0 },
  async load(context) {
    const { audit, from, to } = await closedLoop(context, {
      host: "s2.example",
      clients: Array.from({ length: SESSIONS }, (_, n) => ({ bucket: `b${n % BUCKETS}`, holdMs: HOLD_MS })),
      limits: { slots: SLOTS, slotsPerBucket: 1 },
      warmUpMs: context.isShort ? 1000 : 10_000,
      measureMs: context.isShort ? 6000 : 60_000,
    });
    const granted = audit.holds.filter(({ grantedAt }) => grantedAt >= from && grantedAt < to);
    const buckets = Array.from(
      { length: BUCKETS },
      (_, n) => granted.filter(({ bucket }) => bucket === `b${n}`).length,
    );
    return {
      utilisation: utilisation(audit.holds, { slots: SLOTS, from, to }),
      "wait p99 ÷ ideal":
        percentile(
          granted.map(({ waitedMs }) => waitedMs),
          99,
        ) / IDEAL_WAIT_MS,
      "Jain of grants": jain(buckets),
      "idle p99 ms": idleP99(audit.holds, { slots: SLOTS, from, to }),
      // The part of the utilisation that the load itself costs: a slot held for longer than planned is not the fault of
      // the server.
      "client late p99 ms": percentile(
        granted.filter(({ endedAt }) => endedAt < to).map(({ grantedAt, endedAt }) => endedAt - grantedAt - HOLD_MS),
        99,
      ),
      violations: audit.violations,
    };
  },
  goals: [
    ...goalsOf("slotkeeper", 0.98),
    ...goalsOf("weighted", 0.98),
    ...goalsOf("postgres", 0.96),
    ...goalsOf("postgres-weighted", 0.96),
  ],
};
