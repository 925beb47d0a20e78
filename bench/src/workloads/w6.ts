/** W6: bytes on the heap per queued waiter, including its promise, without signal or timeout. */
import { arrayOfResolvers } from "../limits.ts";
import { lacksAll, type Subject } from "../subject.ts";
import { liveHeapBytes, sized } from "../timing.ts";
import type { Workload } from "../workload.ts";
import { heldGate, thousands } from "./queued.ts";

const WAITERS = 100_000;

/** Keeps objects alive while the heap is measured. */
const kept: unknown[] = [];

/** Some libraries queue in a later tick. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 50));

async function bytesPerWaiter(subject: Subject, waiters: number): Promise<number> {
  const gate = await heldGate(subject);
  // Filled before and kept, so that the array of the promises is not counted.
  const promises: unknown[] = Array.from({ length: waiters }, () => undefined);
  kept.push(gate, promises);
  const before = liveHeapBytes();
  for (let i = 0; i < waiters; i++) promises[i] = gate.wait();
  await settle();
  return (liveHeapBytes() - before) / waiters;
}

export const w6: Workload = {
  id: "W6",
  cases: [
    {
      id: "W6",
      title: `heap per queued waiter, ${thousands(WAITERS)} waiters, promise included`,
      unit: "B",
      noteKey: "W6",
      limitTitle: "a plain array of resolvers",
      limit: arrayOfResolvers,
      needsGc: true,
      absence: (subject) => lacksAll(subject, "acquire", "run"),
      measure: async (subject, isShort) => {
        // Once with few waiters, so that lazy allocations of the library are not charged to the waiters.
        await bytesPerWaiter(subject, 100);
        return { value: await bytesPerWaiter(subject, sized(WAITERS, isShort)) };
      },
      goals: [{ kind: "bound", most: 320, unit: "B" }],
    },
  ],
};
