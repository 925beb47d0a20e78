/**
 * B1, B2, B3: budgets, which are limits over time. B1 is work under a rate that is never reached. B2 is a queue behind
 * one slot under such a rate. B3 is a queue that waits for the rate itself: its memory, and the timers that it needs.
 */
import { arrayOfResolvers, bareWork } from "../limits.ts";
import type { RatedGate, Subject, Work } from "../subject.ts";
import { cost, costOfBatch, liveHeapBytes, sized } from "../timing.ts";
import type { Case, Workload } from "../workload.ts";
import { GROWTH_ONLY, thousands } from "./queued.ts";

const MOST = 200_000;
const NEVER_REACHED = { slots: 10, limit: 1e9, perMs: 60_000 };
const NO_RATE = "limits no rate";
const HOUR_MS = 3_600_000;
const WAITERS = 100_000;

const settled = Promise.resolve(1);
const work: Work = () => settled;

/** The gate of a subject; yardsticks limit no rate and get a plain gate. */
function ratedGate(subject: Subject, limits: typeof NEVER_REACHED): RatedGate {
  const gate = subject.makeRated?.(limits) ?? subject.make?.(limits.slots);
  if (gate?.run === undefined) throw new TypeError(`Subject ${subject.id} runs nothing and does not say why.`);
  return { run: gate.run };
}

const free: Case = {
  id: "B1",
  title: "await limiter.run(work), slots and rate free",
  unit: "ns",
  noteKey: "B1",
  limitTitle: "await work(), no limiter",
  limit: bareWork,
  absence: (subject) => (subject.makeRated === undefined ? NO_RATE : undefined),
  measure: async (subject, isShort) => {
    const { run } = ratedGate(subject, NEVER_REACHED);
    const loop = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) await run(work);
    };
    return { value: await cost(loop, MOST, isShort) };
  },
  goals: [
    { kind: "faster-than", factor: 5, peers: ["bottleneck", "p-queue"] },
    { kind: "level-with", peers: ["p-throttle", "limiter", "rate-limiter-flexible"] },
  ],
};

async function drain(run: RatedGate["run"], waiters: number): Promise<void> {
  let open: () => void = () => {};
  const held = run(() => new Promise<void>((resolve) => (open = resolve)));
  const all = Array.from({ length: waiters }, () => run(work));
  // Some libraries start the work in a later turn.
  await new Promise((resolve) => setTimeout(resolve, 0));
  open();
  await Promise.all([held, ...all]);
}

const oneSlotOnly = (subject: Subject): string | undefined =>
  subject.makeRated === undefined ? NO_RATE : subject.lacks.slots;

const queueOf = (waiters: number, parts: Pick<Case, "goals" | "peersLeftOut">): Case => ({
  id: `B2/${waiters}`,
  title: `${thousands(waiters)} waiters on one slot under a free rate, then drained`,
  unit: "ns",
  noteKey: "B2",
  limitTitle: "a plain array of resolvers and an index",
  limit: {
    ...arrayOfResolvers,
    makeRated: () => {
      const { acquire, release } = arrayOfResolvers.make?.(1) ?? {};
      const run = async (work: Work): Promise<unknown> => {
        await acquire?.();
        const value = await work();
        release?.(undefined as never);
        return value;
      };
      return { run };
    },
  },
  absence: oneSlotOnly,
  measure: async (subject, isShort) => {
    const loop = (count: number): Promise<void> => drain(ratedGate(subject, { ...NEVER_REACHED, slots: 1 }).run, count);
    return { value: await costOfBatch(loop, sized(waiters, isShort), isShort) };
  },
  ...parts,
});

/** Keeps objects alive while the heap is measured. */
const kept: unknown[] = [];

async function weigh(subject: Subject, waiters: number): Promise<{ bytes: number; timers: number }> {
  const timersBefore = armedTimers();
  const { run } = ratedGate(subject, { slots: 10, limit: 1, perMs: HOUR_MS });
  await run(work);
  const promises: unknown[] = Array.from({ length: waiters }, () => undefined);
  kept.push(run, promises);
  const before = liveHeapBytes();
  for (let i = 0; i < waiters; i++) promises[i] = run(work);
  await new Promise((resolve) => setTimeout(resolve, 50));
  return { bytes: (liveHeapBytes() - before) / waiters, timers: armedTimers() - timersBefore };
}

const armedTimers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

const weighed: Case = {
  id: "B3",
  title: `heap per waiter for the rate, ${thousands(WAITERS)} waiters, promise included, and timers`,
  unit: "B",
  noteKey: "B3",
  needsGc: true,
  absence: (subject) => (subject.makeRated === undefined ? NO_RATE : subject.makeRated(NEVER_REACHED).waits),
  measure: async (subject, isShort) => {
    await weigh(subject, 100);
    const { bytes, timers } = await weigh(subject, sized(WAITERS, isShort));
    return { value: bytes, extra: { timers } };
  },
  goals: [
    { kind: "bound", most: 640, unit: "B" },
    { kind: "extra-bound", extra: "timers", most: 1, unit: "" },
  ],
};

export const budgets: readonly Workload[] = [
  { id: "B1", cases: [free] },
  {
    id: "B2",
    cases: [
      queueOf(10_000, { goals: [], peersLeftOut: GROWTH_ONLY }),
      queueOf(100_000, { goals: [{ kind: "grows-like-limit", caseId: "B2/10000", slack: 0.15 }] }),
      queueOf(1_000_000, {
        goals: [{ kind: "grows-like-limit", caseId: "B2/100000", slack: 0.15 }],
        peersLeftOut: GROWTH_ONLY,
      }),
    ],
  },
  { id: "B3", cases: [weighed] },
];
